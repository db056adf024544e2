"""Tests that a broken bound names every link that failed its check, not only the first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from contract.verdict import FAILS, HOLDS
from reports.metrics.bounds import _doubt

OVER = pl.DataFrame({"took_ns": [9_000], "after_ns": [9_000], "worst_ns": [5_000]})


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ("ab", "the links (a, b failed their checks): "),
        ("aabcde", "the links (a, b, c and 2 more failed their checks): "),
        ("", "the receiving end nodes, "),
    ],
)
def test_all_links_are_named(links: str, said: str) -> None:
    proof = [SimpleNamespace(link=link, verdict=FAILS) for link in links]
    proof.append(SimpleNamespace(link="fine", verdict=HOLDS))
    run: Any = SimpleNamespace(bounds={}, proof=proof, plan=SimpleNamespace(events=()))
    assert _doubt(run, OVER).startswith(said)
