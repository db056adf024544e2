"""Runs the documentation's example of programs that record their own messages twice in virtual time, and
compares both runs.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from virtual_place import PROJECT, Place, Ran

EXAMPLE = (PROJECT / "topologies/own-program.yaml").read_bytes()


@pytest.mark.skipif(shutil.which("cc") is None, reason="the example's receiver is C; install cc")
def test_the_same_bytes_twice_and_the_delay_of_the_link(places: Callable[[str], Place]) -> None:
    first, second = (_run(places(name)) for name in ("own", "own-again"))
    assert first.hashes["raw/messages.csv"] == second.hashes["raw/messages.csv"]
    assert first.hashes == second.hashes
    assert first.manifest["warnings"] == []
    messages = pl.read_parquet(next(first.run_dir.rglob("messages.parquet")))
    # meters x messages/s x seconds; the first second belongs to the start
    assert messages.height == 2 * 10 * 2
    assert messages["latency_ns"].drop_nulls().min() >= 20_000_000  # type: ignore[operator]


def _run(place: Place) -> Ran:
    Path(place.cwd / "own-program.yaml").write_bytes(EXAMPLE)
    parameters = ("-p", "hold=3s", "-p", "meters=2")
    return place.run(*parameters, file="own-program.yaml")
