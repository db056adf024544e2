"""Tests the report of the industrial Ethernet paper: data for which each claim holds and data for which it
fails, and statistics of all repetitions together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from reports.claims.evidence import Evidence
from reports.claims.verdict import FAILS, HOLDS, OPEN
from reports.metrics.compare import SCHEMA
from reports.metrics.metric import OF
from reports.papers import PAPERS
from reports.papers.industrial_ethernet import tables
from reports.study import Study

CLAIMS = PAPERS["industrial_ethernet"].claims()
RING = 5


def crafted(figures: dict[str, float]) -> Evidence:
    """Returns evidence from figures by the names of claims.yaml."""
    found = Evidence(Study("crafted", Path("nowhere"), (), False), CLAIMS.factor)
    rows = []
    for name, value in figures.items():
        quantity = CLAIMS.quantities[name]
        found.series[quantity.scenario, RING] = "all"
        of = (getattr(quantity.of[0], field) for field in OF)
        rows.append((quantity.scenario, "all", quantity.metric, *of, value, value, value, "ms", 4, 4, ""))
    found.table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return found


PRINTED = {  # ms, the values of tables 1 to 3
    "untagged_alone_mean": 0.700, "untagged_receive_mean": 0.7549, "untagged_transmit_mean": 1.0933,
    "tagged_transmit_mean": 1.0907, "queues_alone_mean": 0.700, "queues_transmit_mean": 0.7148,
    "untagged_transmit_std": 0.0937, "queues_transmit_std": 0.0178, "queues_alone_std": 0.014,
    "tagged_receive_std": 0.0217, "queues_receive_std": 0.0183,
    "untagged_transmit_answered": 200, "untagged_transmit_scheduled": 200,
    "tagged_transmit_answered": 200, "tagged_transmit_scheduled": 200,
    "one_queue_receive_std": 0.0217, "two_queues_receive_std": 0.0183,
    "one_queue_receive_mean": 0.7518, "two_queues_receive_mean": 0.7151,
}  # fmt: skip
AGAINST = {
    "queues-steady": {"queues_transmit_std": 0.048},
    "queues-fast": {"queues_transmit_mean": 1.09},
    "tags-alone": {"tagged_transmit_mean": 0.8},
    "transmit-slower": {"untagged_transmit_mean": 0.76},
    "receive-unchanged": {"queues_receive_std": 0.001},
    "receive-queue": {"two_queues_receive_std": 0.001},
}


@pytest.mark.parametrize("key", AGAINST)
def test_each_claim_both_ways(key: str) -> None:
    claim = next(claim for claim in CLAIMS.claims if claim.key == key)
    assert claim.judge(crafted(PRINTED)).verdict == HOLDS
    assert claim.judge(crafted(PRINTED | AGAINST[key])).verdict == FAILS


def test_what_survives_does_not_speak_for_the_rest() -> None:
    claim = next(claim for claim in CLAIMS.claims if claim.key == "tags-alone")
    judged = claim.judge(crafted(PRINTED | {"tagged_transmit_answered": 157}))
    assert judged.verdict == OPEN and "of 78 % of the messages only" in judged.reason


@dataclass(frozen=True)
class StandIn:
    """Stands for a run or a cell that has only messages."""

    messages: pl.DataFrame

    @property
    def run(self) -> Any:
        return self


def study(*trips_us: list[float | None]) -> Study:
    cells = [
        StandIn(pl.DataFrame({"class": ["queues-transmit"] * len(t), "round_trip_ns": t})) for t in trips_us
    ]
    return Study("crafted", Path("nowhere"), tuple(cells), False)  # type: ignore[arg-type]  # stand-ins


def test_repetitions_count_together_and_what_was_not_answered_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables, "held_messages", lambda run: run.messages)
    table, _ = tables.tables(study([700e3, 720e3], [740e3, None]))
    assert table.caption.startswith("Table 3")
    alone, receive, transmit = table.rows
    assert transmit == (
        "transmit load", "720.0", "714.8", "20.0", "17.8", "740.0", "871.4", "700.0", "682.1", "3 of 4",
    )  # fmt: skip
    assert alone[1::2] == ("", "", "", "", "") and alone[2] == "700"
    assert receive[2] == "715.1"


def test_each_repetition_stands_beside_a_printed_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "held_messages", lambda run: run.messages)
    _, series = tables.tables(study([700e3, 720e3], [740e3, 760e3, 750e3], [None, None]))
    assert len(series.rows) == 8, "four of each load"
    first, second, third, fourth = series.rows[4:]
    assert first[:5] == ("transmit load, series 1", "710.0", "710.6", "14.1", "18.8")
    assert second[1:3] == ("750.0", "715.7") and second[-1] == "3 of 3"
    assert third[1] == fourth[1] == "" and fourth[2] == "715.7", "they have no answers, or were not run"
    assert len(tables.tables(study([700e3, 720e3]))) == 1, "one run has no series beside it"


def test_the_printed_series_are_those_of_the_combined_rows() -> None:
    for tagging in tables.TAGGING:
        for load in ("receive", "transmit"):
            mean, _, most, least = zip(*tables.printed_series(tagging, load), strict=True)
            whole = tables.printed(tagging, load)
            assert sum(mean) / 4 == pytest.approx(whole["mean"], abs=0.06)
            assert (max(most), min(least)) == (whole["max"], whole["min"])


def test_every_series_and_least_is_judged_on_its_number() -> None:
    rows = [claim for claim in CLAIMS.claims if "-series-" in claim.key]
    assert len(rows) == 24
    for claim in (*rows, *(claim for claim in CLAIMS.claims if claim.key.endswith("-least"))):
        value = float(claim.printed.removesuffix(" us")) / 1000
        judged = claim.quantities[0].name if claim.complete is None else next(
            q.name for q in claim.quantities if q.name.endswith(("_mean", "_least"))
        )  # fmt: skip
        tagging = judged.split("_")[0]
        answered = {f"{tagging}_transmit_answered": 200.0, f"{tagging}_transmit_scheduled": 200.0}
        for factor, verdict in ((1.0, HOLDS), (0.85, FAILS), (1.15, FAILS)):
            assert claim.judge(crafted({judged: factor * value, **answered})).verdict == verdict, claim.key


def test_the_least_is_of_answered_round_trips_of_the_papers_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "held_messages", lambda run: run.messages)
    classes = ["queues-alone", "queues-alone", "queues-alone", "queues-get", "tagged-alone"]
    run = StandIn(pl.DataFrame({"class": classes, "round_trip_ns": [720e3, 700e3, None, 1e3, None]}))
    (found,) = tables.least_metrics(run)  # type: ignore[arg-type]  # a stand-in
    assert (found.of.traffic_class, found.value, found.n) == ("queues-alone", 0.7, 2)
    monkeypatch.setattr(tables, "held_messages", lambda run: None)
    assert tables.least_metrics(run) == []  # type: ignore[arg-type]


def test_without_its_messages_there_is_no_table() -> None:
    assert tables.tables(Study("empty", Path("nowhere"), (), False)) == ()
