"""Tests the report of the simulated substations: data for which claims hold and fail, messages beside file
transfers, table and figure.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from synthetic import run_of

from reports.cell import Cell
from reports.claims.evidence import Evidence
from reports.claims.verdict import FAILS, HOLDS, OPEN
from reports.figures.spec import CannotDrawError
from reports.metrics.compare import SCHEMA
from reports.metrics.metric import OF
from reports.papers import PAPERS
from reports.papers.industrial_ethernet_substation.delays import ROOM, delay_metrics, delays
from reports.papers.industrial_ethernet_substation.figures import SPEC, data, draw
from reports.rundir import Run
from reports.study import Study

PAPER = PAPERS[ROOM]
CLAIMS = PAPER.claims()
MS = 1_000_000
PRINTED = {  # us; values in the text on figures 3, 5 and 6, which has none for figure 7
    200: {
        "up_alone": 290, "up_ftp": 850, "down_alone": 310, "down_ftp": 360, "busbar_mean": 250, "busbar": 300,
        "busbar_ftp": 2000,
    },
    100: {
        "protection": 160, "protection_ftp": 175, "breaker": 160, "busbar": 180, "busbar_ftp": 290,
        "back": 170, "back_ftp": 280,
        "protection_ftp_received": 100, "busbar_ftp_received": 100, "back_ftp_received": 100,
    },
    50: {"up_ftp": 200, "down_ftp": 150},
}  # fmt: skip
AGAINST = {  # claim -> the level and figure with which the claim fails
    "up": (200, "up_alone", 310),
    "down": (200, "down_alone", 290),
    "upload": (200, "up_ftp", 400),
    "download": (200, "down_ftp", 1000),
    "not-met": (200, "up_ftp", 600),
    "met-when-faster": (50, "up_ftp", 950),
    "intrabay-up": (100, "protection", 240),
    "intrabay-down": (100, "breaker", 240),
    "intrabay-with-files": (100, "protection_ftp", 180),
    "interbay-up": (100, "busbar", 240),
    "interbay-down": (100, "back", 240),
    "up-with-files": (100, "busbar_ftp", 300),
    "down-with-files": (100, "back_ftp", 300),
    "bays-met": (100, "busbar_ftp", 800),
    "slower-steady": (200, "busbar_mean", 1200),
    "slower-transient": (200, "busbar_ftp", 800),
}


def evidence(*other: tuple[int, str, float]) -> Evidence:
    """Returns evidence with the printed figures, some of them replaced, by level and name."""
    found = Evidence(Study("crafted", Path("nowhere"), (), False), CLAIMS.factor)
    figures = {(level, name): v for level, of in PRINTED.items() for name, v in of.items()}
    rows = []
    for (level, name), value in (figures | {(level, name): v for level, name, v in other}).items():
        quantity, series = CLAIMS.quantities[name], f"{level} us"
        found.series[quantity.scenario, series] = series
        of = (getattr(quantity.of[0], field) for field in OF)
        key = (quantity.scenario, series, quantity.metric)
        rows.append((*key, *of, float(value), None, None, "us", 1, 1, ""))
    found.table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return found


def test_the_largest_of_survivors_cannot_be_told() -> None:
    claim = next(claim for claim in CLAIMS.claims if claim.key == "down-with-files")
    judged = claim.judge(evidence((100, "back_ftp_received", 60)))
    assert judged.verdict == OPEN and "of 60 % of the messages only" in judged.reason


def test_a_response_of_nine_times_the_papers_is_not_just_above_its_limit() -> None:
    claim = next(claim for claim in CLAIMS.claims if claim.key == "not-met")
    assert claim.judge(evidence((200, "up_ftp", 8000))).verdict == FAILS


@pytest.mark.parametrize("key", AGAINST)
def test_each_claim_both_ways(key: str) -> None:
    claim = next(claim for claim in CLAIMS.claims if claim.key == key)
    assert claim.judge(evidence()).verdict == HOLDS
    assert claim.judge(evidence(AGAINST[key])).verdict == FAILS


def message(
    at_ms: int, traffic_class: str, receiver: str, us: int, sender: str = "ct-a1-samples"
) -> dict[str, Any]:
    """Returns a message that arrived `us` after it was sent, and was sent 40 us late; its delay does not
    include the latter.
    """
    sent = at_ms * MS + 40_000
    return {
        "class": traffic_class, "sender": sender, "receiver": receiver, "scheduled_ns": at_ms * MS,
        "sent_ns": sent, "received_ns": sent + us * 1000,
    }  # fmt: skip


def run(scenario: str, *messages: dict[str, Any], files: dict[str, tuple[int, int]]) -> Run:
    passes = [
        message(begin, "ftp", "server", 0) | {"name": name, "sent_ns": begin * MS, "settled_ns": end * MS}
        for name, (begin, end) in files.items()
    ]
    rows = [{"name": "", "settled_ns": None} | one for one in messages]
    return run_of(
        plan={"reference": ROOM, "scenario": scenario}, messages=pl.DataFrame([*rows, *passes]),
    )  # fmt: skip


def bays() -> Run:
    lost = message(150, "samples", "busbar-in", 0) | {"received_ns": None}
    return run(
        "bays",
        message(0, "samples", "busbar-in", 170),
        message(50, "samples", "busbar-in", 180),
        message(90, "samples", "busbar-in", 200),
        message(150, "samples", "busbar-in", 250),
        lost,
        message(10, "samples", "protection-a-in", 160),
        message(10, "samples", "differential-a-in", 999),
        message(20, "trips", "cb-a-in", 150, "protection-a-trips"),
        message(20, "trips", "cb-a-in", 999, "bay-control-a-trips"),
        message(30, "busbar-trips", "cb-b-in", 165, "busbar-trips"),
        message(30, "status", "protection-a-in", 999),
        files={"server.first.upload": (100, 200)},
    )  # fmt: skip


def values(one: Run) -> dict[tuple[str | None, str], float]:
    return {(m.of.traffic_class, m.name): m.value for m in delay_metrics(one)}


def test_delays_count_from_being_sent_apart_by_whether_a_file_passes() -> None:
    found = values(bays())
    assert found["ct-busbar", "alone_delay_max"] == pytest.approx(180)
    assert found["ct-busbar", "alone_delay_mean"] == pytest.approx(175)
    assert found["ct-busbar", "ftp_delay_max"] == pytest.approx(250)
    assert found["ct-busbar", "ftp_received"] == 50  # %, one of two
    assert found["ct-protection", "alone_delay_max"] == pytest.approx(160)
    assert found["protection-cb", "alone_delay_max"] == pytest.approx(150)
    assert found["busbar-cb", "alone_delay_max"] == pytest.approx(165)
    assert {name for name, _ in found} == {"ct-busbar", "ct-protection", "protection-cb", "busbar-cb"}


def test_in_the_flat_network_each_way_has_its_own_file_and_the_pisa_that_has_it() -> None:
    found = values(
        run(
            "flat",
            message(10, "tested-samples", "east-samples", 290),
            message(10, "samples", "west-samples", 280),
            message(110, "tested-samples", "east-samples", 850),
            message(110, "samples", "west-samples", 500),
            message(110, "tested-commands", "tested-commands", 700),
            message(310, "tested-samples", "east-samples", 600),
            message(310, "tested-commands", "tested-commands", 350),
            message(390, "commands", "east-pisa1-commands", 900),
            message(410, "commands", "east-pisa1-commands", 310),
            files={"tested.files.upload": (100, 200), "tested.files.download": (300, 380)},
        )
    )
    assert {key: round(value) for key, value in found.items() if key[1].endswith("mean")} == {
        ("pisa-controller", "alone_delay_mean"): 285,
        ("pisa-controller", "ftp_delay_mean"): 850,
        ("controller-pisa", "alone_delay_mean"): 310,
        ("controller-pisa", "ftp_delay_mean"): 350,
    }


def study(*runs: Run) -> Study:
    cells = tuple(Cell(one, [], str(one.plan.scenario), {}, "") for one in runs)
    return Study("crafted", Path("nowhere"), cells, len(cells) == 1)


def test_the_table_has_the_printed_beside_the_measured() -> None:
    (table,) = PAPER.tables(study(bays()))
    assert table.caption.startswith("Figures 5 to 7")
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["CT/VT to busbar, no files"] == ("175.0", "180.0", "180.0", "180", "2")
    assert rows["CT/VT to busbar, beside files"] == ("250.0", "250.0", "250.0", "300", "1")
    assert "CT/VT to protection, beside files" not in rows


def test_the_figure_has_the_largest_of_each_tenth_of_a_second() -> None:
    rows = data(study(bays())).filter(pl.col("stream") == "CT/VT to busbar")
    assert rows.select(pl.col("at", "us").round(6), "files").rows() == [
        (0.0, 180.0, False),
        (0.1, 250.0, True),
    ]
    assert draw(rows, study(bays())).to_dict()["facet"]["field"] == "stream"
    assert set(SPEC.claims) <= {claim.key for claim in CLAIMS.claims}


def test_other_runs_have_none_of_it() -> None:
    other = run_of(
        plan={"reference": "reserve"}, messages=pl.DataFrame([message(0, "samples", "busbar-in", 1)])
    )
    assert delays(other) is None and delay_metrics(other) == []
    with pytest.raises(CannotDrawError, match=r"substation-bays\.yaml"):
        data(Study("empty", Path("nowhere"), (), False))
