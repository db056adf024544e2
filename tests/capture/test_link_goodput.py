"""Tests the check that a link carried at least its goodput, where a transfer ends within the sample in which
the hold begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from capture.conservation.evidence import Evidence
from capture.conservation.figures import payload_is_carried
from contract.manifest import Manifest
from contract.plan import Plan

S = 10**9


@dataclass(frozen=True)
class Samples(Evidence):
    """Evidence with samples of one link: (time in s, bytes)."""

    counts: tuple[tuple[float, int], ...] = ()

    @property
    def links(self) -> pl.DataFrame:
        rows = [("wan", "forward", round(at * S), size) for at, size in self.counts]
        return pl.DataFrame(rows, schema=["link", "direction", "t_ns", "bytes"], orient="row")


def figures(goodput: float, carried: float) -> list[dict[str, Any]]:
    values = {"link_goodput": goodput, "link_carried": carried, "link_peak": carried}
    return [
        {"name": name, "value": value, "n": 4, "link": "wan", "direction": "forward"}
        for name, value in values.items()
    ]


@pytest.mark.parametrize(
    ("sizes", "goodput_mbps", "agrees"),
    [
        ((0, 8_000_000, 8_000_000, 8_000_000), 16.0, True),  # 8 MB between 9.8 s and 10.8 s
        ((0, 0, 0, 8_000_000), 16.0, True),
        ((0, 8_000_000, 8_000_000, 8_000_000), 16.1, False),
        ((0, 1_000_000, 1_000_000, 1_000_000), 16.0, False),
    ],
)
def test_a_transfer_in_a_sample_that_the_hold_cuts_was_carried(
    sizes: tuple[int, ...], goodput_mbps: float, agrees: bool
) -> None:
    times = (9.8, 10.8, 13.8, 14.8)
    manifest = Manifest(phases={"hold": [10 * S, 14 * S]})
    evidence = Samples(Path(), Plan.__new__(Plan), manifest, counts=tuple(zip(times, sizes, strict=True)))
    (compared,) = payload_is_carried(evidence, figures(goodput_mbps, 0.0)).compared
    assert compared.agrees("at most") == agrees
