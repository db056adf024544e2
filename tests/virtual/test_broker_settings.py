"""Tests a small part of docs/how-to/compare-two-settings.md: the cost of Nagle's algorithm at the broker."""

from __future__ import annotations

import polars as pl
from virtual_place import PROJECT, Place

FILE = PROJECT / "topologies" / "broker-settings.yaml"


def p99_ms(place: Place, *more: str) -> float:
    run = place.run("-p", "clients=5", "-p", "hold=5s", *more, file=str(FILE))
    found = pl.read_parquet(run.run_dir / "messages.parquet")["latency_ns"].quantile(0.99)
    assert found is not None
    return found / 1e6


def test_messages_wait_for_acknowledgements_while_nagles_algorithm_is_on(place: Place) -> None:
    """Shows that with Nagle's algorithm a message waits for the acknowledgement of the one before: 20 ms
    there, 10 ms back.
    """
    assert p99_ms(place) > p99_ms(place, "-p", "nodelay=true") + 5
