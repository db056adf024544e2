"""Tests figures 4.1 and 4.2 of cooperative congestion control as calculated, and flows judged by them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from reports.claims.evidence import Evidence
from reports.claims.verdict import FAILS, HOLDS
from reports.papers import PAPERS
from reports.papers.ccc_2011 import classes, early, serial
from reports.study import Study

PAPER = PAPERS["ccc_2011"]
EMPTY = Study("empty", Path("nowhere"), (), False)
BY_NAME = {one.name: one for one in classes.applications()}


def test_a_line_carries_what_is_left_of_it_beside_the_frame() -> None:
    assert serial.channels(9600, 30) == 2, "32 bytes a frame, 22 of them the frame's own"
    assert serial.channels(9600, 50) == 0, "the frame alone takes 22 bytes of 19"
    assert serial.channels(115_200, 10) == 12, "no more than the unit has"
    assert serial.channels(115_200, 60, most=60) == 42
    for baud, rate in ((0, 30), (9600, 0), (-1, 30)):
        with pytest.raises(ValueError, match="above zero"):
            serial.channels(baud, rate)


def test_all_printed_numbers_are_as_calculated() -> None:
    assert len(serial.printed()) == 40
    assert {key for key, value in serial.printed().items() if serial.channels(*key) != value} == set()
    assert "(" not in "".join(cell for row in serial.table().rows for cell in row[1:])


def test_a_number_that_differs_is_shown_and_the_claim_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = next(one for one in PAPER.claims().claims if one.key == "serial-channels")
    judged = PAPER.judged(EMPTY)["serial-channels"][1]
    assert (judged.verdict, judged.reason) == (
        HOLDS,
        "40 of 40 numbers are as calculated; nothing is measured",
    )
    monkeypatch.setattr(serial, "FRAME", 30)  # bytes; the frame of floating-point values
    found = Evidence(EMPTY, PAPER.claims().factor, PAPER.measures, serial.gathered(EMPTY))
    assert claim.judge(found).verdict == FAILS
    assert serial.table().rows[0][3] == "8 (10)"


def test_the_consequences_of_the_classes() -> None:
    a, b, c = (BY_NAME[name] for name in "ABC")
    assert a.down_s == pytest.approx(31.6, abs=0.05)
    assert (a.bridged, b.bridged, c.bridged, BY_NAME["D"].bridged) == (0, 1, 2, None)
    assert c.availability**c.needed < 0.05 < c.availability ** (c.needed - 1)


def rows(*latencies_ms: float | None) -> pl.DataFrame:
    """Returns messages of a flow that sends 20 samples a second, with these latencies."""
    at = [place / 20 for place in range(len(latencies_ms))]
    latency = [None if one is None else one * 1e6 for one in latencies_ms]
    return pl.DataFrame(
        {"at": at, "latency_ns": latency}, schema={"at": pl.Float64, "latency_ns": pl.Float64}
    )


def test_an_interruption_lasts_until_a_sample_comes_in_time() -> None:
    found = classes.delivery(rows(10, None, 60, 10, None), 50, end_s=0.3)
    assert (found.samples, found.in_time) == (5, 2)
    assert found.interruption_ms == pytest.approx(100), "two in a row of 20 a second; the last takes 100, too"
    assert classes.delivery(rows(10, 10), 50, 0.1).interruption_ms == 0
    assert classes.delivery(rows(60, None), None, 0.1).in_time == 1, "a class without a limit takes any"


def test_few_samples_contradict_a_class_or_tell_nothing() -> None:
    late, well = classes.delivery(rows(10, 60, 10), 50, 0.15), classes.delivery(rows(10, 10, 10), 50, 0.15)
    assert classes.meets(late, BY_NAME["A"]) is False
    assert classes.meets(well, BY_NAME["A"]) is None
    assert classes.meets(classes.Delivery(29_956, 29_956, 0), BY_NAME["C"]) is True
    assert classes.meets(classes.Delivery(1_000_000, 999_999, 120), BY_NAME["C"]) is False, "it lasted 100 ms"
    assert classes.meets(classes.Delivery(1_000_000, 999_999, 50), BY_NAME["C"]) is None


def test_a_study_without_the_papers_flows_has_no_tables() -> None:
    assert classes.tables(EMPTY) == ()
    assert PAPER.tables(EMPTY) == ()


def test_queues_are_compared_by_drops_and_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = pl.DataFrame({
        "class": ["short-flow", "short-flow", "long-flow", "red-flow", "red-flow"],
        "at": [6.0, 7.0, 6.0, 6.0, 1.0],
        "received_ns": [5, None, 5, 5, None],
        "latency_ns": [20_000_000, None, 80_000_000, 40_000_000, None],
    })  # fmt: skip
    monkeypatch.setattr(early, "within", lambda run: messages)
    found = {(m.of.traffic_class, m.name): m.value for m in early.early_metrics(None)}  # type: ignore[arg-type]
    assert found["short-flow", early.DROPPED] == 50 and found["red-flow", early.DROPPED] == 0
    assert found["long-flow", early.LATENCY] == 80 and found["red-flow", early.LATENCY] == 40
    monkeypatch.setattr(early, "within", lambda run: messages.filter(pl.col("class") != "red-flow"))
    assert early.early_metrics(None) == []  # type: ignore[arg-type]  # another experiment
    assert early.tables(EMPTY) == ()
