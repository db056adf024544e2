"""Runs the experiment of the dissertation's chapter 7 in virtual time, with the cooperation framework and
without it.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from virtual_place import PROJECT, Place

from reports.papers.ccc_2011 import beyond
from reports.papers.ccc_2011.intervals import interval_metrics, sent
from reports.papers.ccc_2011.tables import tables
from reports.rundir import read_run
from reports.study import study_of_run

DIES = ((45, "kill"), (50, "start"))
FILE = str(PROJECT / "topologies/papers/ccc-2011.yaml")


def figures(place: Place, cooperate: str) -> dict[tuple[str, str | None, str | None], float]:
    ran = place.run("-p", f"cooperate={cooperate}", file=FILE)
    assert len(tables(study_of_run(ran.run_dir))) == (
        6 if cooperate == "true" else 5
    )  # three of the figures are calculated
    return {
        (m.name, m.of.traffic_class, m.of.event): m.value for m in interval_metrics(read_run(ran.run_dir))
    }


def test_shares_are_moved_senders_obey_and_the_broker_ends_it(place: Place) -> None:
    found = figures(place, "true")
    assert found["ccc_missed", "a-hrt", "40 to 60 s"] < 15
    assert found["ccc_dropped", "a-hrt", "40 to 60 s"] < 1
    assert found["ccc_sent", "a-be", "60 to 80 s"] == pytest.approx(2.3, abs=0.4)
    assert found["ccc_sent", "b-lrt", "80 to 90 s"] == pytest.approx(10, abs=0.5)
    for flow in ("a-hrt", "b-hrt"):
        assert 8 < found["ccc_dropped", flow, "90 to 100 s"] < 20
        assert found["ccc_missed", flow, "103 to 118 s"] == found["ccc_dropped", flow, "103 to 118 s"] == 0
    assert found["ccc_sent", "a-be", "103 to 118 s"] == pytest.approx(20, abs=0.5), "it is given back"


@pytest.mark.sweep  # without a gateway; queueing/test_queue_traffic.py has such queues
def test_without_it_the_paper_is_repeated_to_a_few_per_cent(place: Place) -> None:
    found = figures(place, "false")
    for interval, dropped in (
        ("40 to 60 s", 50),
        ("60 to 80 s", 50),
        ("80 to 90 s", 60),
        ("90 to 100 s", 66),
    ):
        assert found["ccc_dropped", "a-hrt", interval] == pytest.approx(dropped, abs=4)
        in_time = 100 - found["ccc_dropped", "a-hrt", interval] - found["ccc_missed", "a-hrt", interval]
        assert in_time < 2.5
    assert found["ccc_missed", "a-lrt", "40 to 60 s"] == 0
    assert found["ccc_missed", "a-hrt", "103 to 118 s"] == 0


@pytest.mark.sweep
@pytest.mark.slow
def test_strict_priority_serves_the_first_and_starves_the_last(place: Place) -> None:
    """Shows the missed deadlines of each scheme: strict priority serves the first class and starves the last.

    Smaller tests: queueing/test_queue_traffic.py of such queues, reports/test_reports_ccc.py of this table.
    """
    ran = place.run("--lab", "queues", file=str(PROJECT / "topologies/papers/ccc-2011-queues.yaml"))
    (table,) = beyond.tables(study_of_run(ran.run_dir))
    rows = {row[0]: [float(cell) for cell in row[1:] if cell] for row in table.rows}
    assert rows["strict priority"] == pytest.approx([40, 20, 5, 60, 0, 0], abs=1.5)
    assert rows["gateways that cooperate"] == []
    assert rows["fq_codel"][2] == pytest.approx(20, abs=0.5)


def test_a_gateway_that_was_killed_goes_on_from_the_reservations(place: Place) -> None:
    text = Path(FILE).read_text().replace("period: ${period}", "period: ${period}\n          release: 5 s")
    text = text.replace("rate: 50 /s", "rate: 20 /s").replace("rate: 60 /s", "rate: 20 /s")
    timeline = [f"  - {{at: hold + {at} s, {what}: router, software: gateway}}" for at, what in DIES]
    parts = [text[: text.index("campaign:")], "timeline:", *timeline, ""]
    (place.cwd / "dies.yaml").write_text("\n".join(parts))
    rows = sent(read_run(place.run("-p", "response=1000 s", file="dies.yaml").run_dir))
    assert rows is not None

    def per_s(flow: str, begin: float, end: float) -> float:
        of_flow = (pl.col("class") == flow) & pl.col("at").is_between(begin, end, closed="left")
        return rows.filter(of_flow).height / (end - begin)

    in_time = rows.filter((pl.col("latency_ns") < 50e6) & pl.col("at").is_between(46, 58))
    assert in_time.filter(pl.col("class") == "a-hrt").height > 0.98 * 40 * 12, "its shares outlive it"
    assert per_s("a-be", 52, 58) < 15, "it goes on with what A-HRT needs"
    for victim in ("a-be", "b-be"):
        assert per_s(victim, 95, 115) == pytest.approx(20, abs=0.5), "what was taken is given back"
