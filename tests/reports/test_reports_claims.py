"""Tests that every rule can give every verdict, on crafted numbers."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from synthetic import write_campaign, write_run
from synthetic_shape import Shape

from reports.claims.evidence import Evidence, Factor, Level, Quantity
from reports.claims.verdict import FAILS, HOLDS, OPEN, Judgement, Value, positive, together
from reports.metrics.compare import SCHEMA
from reports.metrics.metric import OF, Of
from reports.papers import paper_of
from reports.papers.vnet_2014 import VNET_2014
from reports.study import Study, study_of_campaign, study_of_run

ONE, TWO = "scenario 1", "scenario 2"
CLAIMS = VNET_2014.claims()
Row = tuple[str, int, str, Of, float, float]  # scenario, QoS, metric, subject, value, half its interval


class Crafted(Evidence):
    """Evidence that reads a table of values instead of runs."""

    def __init__(self, rows: list[Row], clients: int = 351, ticked: bool = False) -> None:
        super().__init__(Study("crafted", Path("nowhere"), (), False), CLAIMS.factor)
        table = [
            (s, f"QoS {q}", name, *(getattr(of, f) for f in OF), v, v - half, v + half, "u", 10, 1, "")
            for s, q, name, of, v, half in rows
        ]
        seen = (ONE, "QoS 0", "packets", *(getattr(LAN, f) for f in OF), 9.0, None, None, "", 9, 1, "")
        self.table = pl.DataFrame([*table, seen], schema=SCHEMA, orient="row")
        self.series = {(s, q): f"QoS {q}" for s, q, *_ in rows}
        self._clients, self._ticked = clients, ticked

    @property
    def ticked(self) -> bool:
        return self._ticked

    def clients(self, scenario: str) -> int:
        return self._clients

    def curve(self, quantity: Quantity, level: Level) -> pl.DataFrame:
        rows = self.table.filter(pl.col("name") == "curve").sort("bin")
        steps = pl.int_range(pl.len(), dtype=pl.Int64)
        return rows.select(step=steps, clients=steps.cast(pl.Float64), value="value")


LAN = Of(capture="lan")
BROKER, SUBSCRIBER, PUBLISHER = (Of(nodes=name) for name in ("broker", "receiver", "sender"))
SMALL, LARGE = (Of(capture="lan", bin=name) for name in ("40-79", "640-1279"))
LAB, OUTER = (Of(machine=name) for name in ("lab", "outer"))


def levels(name: str, of: Of, *values: float, half: float = 0.01, scenario: str = ONE) -> list[Row]:
    return [(scenario, q, name, of, v, half) for q, v in enumerate(values)]


def curve(*values: float) -> list[Row]:
    return [(ONE, 0, "curve", Of(bin=f"{i:02d}"), v, 0.0) for i, v in enumerate(values)]


CASES: list[tuple[str, str, list[Row]]] = [
    ("cpu-clients-1", HOLDS, curve(1, 2, 3, 4, 5, 6)),
    ("cpu-clients-1", FAILS, curve(6, 5, 4, 3, 2, 1)),
    ("cpu-clients-1", OPEN, curve(1, 2, 3)),
    ("cpu-clients-1", OPEN, curve(1, 3, 0, 2, 4, 3)),
    ("net-clients-1", HOLDS, curve(1, 2, 3, 4, 5, 6)),
    ("cpu-qos-1", HOLDS, levels("cpu", BROKER, 1.0, 1.1, 1.5)),
    ("cpu-qos-1", FAILS, levels("cpu", BROKER, 1.0, 1.1, 0.5)),
    ("cpu-qos-1", OPEN, levels("cpu", BROKER, 1.0, 1.1, 1.5, half=0.2)),
    ("cpu-qos-1", OPEN, levels("cpu", BROKER, 1.0, 1.1)),
    ("cpu-step-1", HOLDS, levels("cpu", BROKER, 1.0, 1.1, 1.5)),
    ("cpu-step-1", FAILS, levels("cpu", BROKER, 1.0, 1.4, 1.5)),
    ("cpu-step-1", OPEN, levels("cpu", BROKER, 1.0, 1.1, 1.3, half=0.05)),
    ("net-qos-1", HOLDS, levels("received", BROKER, 8, 9, 12) + levels("sent", BROKER, 8, 9, 12)),
    ("net-qos-1", FAILS, levels("received", BROKER, 9, 8, 7) + levels("sent", BROKER, 9, 8, 7)),
    ("net-step-1", HOLDS, levels("received", BROKER, 8, 9, 12) + levels("sent", BROKER, 8, 9, 12)),
    ("net-step-1", FAILS, levels("received", BROKER, 8, 9, 10) + levels("sent", BROKER, 8, 9, 10)),
    (
        "receives-more",
        HOLDS,
        levels("received", BROKER, 9) + levels("sent", BROKER, 8) + levels("received_minus_sent", BROKER, 1),
    ),
    (
        "receives-more",
        FAILS,
        levels("received", BROKER, 8) + levels("sent", BROKER, 9) + levels("received_minus_sent", BROKER, -1),
    ),
    ("receives-more", OPEN, []),
    ("subscriber-cpu", HOLDS, levels("cpu", SUBSCRIBER, 3.0) + levels("cpu", PUBLISHER, 0.5)),
    ("subscriber-cpu", FAILS, levels("cpu", SUBSCRIBER, 30.0) + levels("cpu", PUBLISHER, 0.5)),
    ("subscriber-cpu", OPEN, levels("cpu", SUBSCRIBER, 30.0)),
    (
        "subscriber-net",
        HOLDS,
        levels("received", SUBSCRIBER, 80)
        + levels("sent", SUBSCRIBER, 5)
        + levels("received", PUBLISHER, 0.02)
        + levels("sent", PUBLISHER, 0.23),
    ),
    ("publisher-net", HOLDS, levels("received", PUBLISHER, 0.2) + levels("sent", PUBLISHER, 0.4)),
    ("publisher-net", FAILS, levels("received", PUBLISHER, 0.02) + levels("sent", PUBLISHER, 0.2)),
    ("cpu-scenarios", HOLDS, levels("cpu", BROKER, 1.0) + levels("cpu", BROKER, 1.1, scenario=TWO)),
    ("cpu-scenarios", FAILS, levels("cpu", BROKER, 1.0) + levels("cpu", BROKER, 1.3, scenario=TWO)),
    ("cpu-scenarios", OPEN, levels("cpu", BROKER, 1.0)),
    (
        "rates-match",
        HOLDS,
        levels("received", BROKER, 100, scenario=TWO) + levels("sent", BROKER, 99, scenario=TWO),
    ),
    (
        "rates-match",
        FAILS,
        levels("received", BROKER, 100, scenario=TWO) + levels("sent", BROKER, 90, scenario=TWO),
    ),
    ("rates-match", OPEN, levels("received", BROKER, 100)),
    ("tcp-overhead", HOLDS, levels("packet_size", SMALL, 81) + levels("goodput_packets", LAN, 30)),
    ("tcp-overhead", FAILS, levels("packet_size", SMALL, 79) + levels("goodput_packets", LAN, 30)),
    ("tcp-overhead", OPEN, []),
    (
        "small-packets",
        HOLDS,
        levels("packet_size", SMALL, 50, 70, 80) + levels("packet_size", LARGE, 50, 30, 20),
    ),
    (
        "small-packets",
        FAILS,
        levels("packet_size", SMALL, 50, 70, 60) + levels("packet_size", LARGE, 50, 30, 20),
    ),
    ("small-packets", OPEN, levels("packet_size", SMALL, 50) + levels("packet_size", LARGE, 50)),
    ("arp-share", HOLDS, levels("arp_packets", LAN, 0.04, half=0.001)),
    ("arp-share", FAILS, levels("arp_packets", LAN, 0.06, half=0.001)),
    ("arp-share", OPEN, []),
    # a part of the interval is above the bound
    ("arp-share", OPEN, levels("arp_packets", LAN, 0.045, half=0.01)),
    ("control-only", HOLDS, levels("packet_size", SMALL, 70) + levels("goodput_packets", LAN, 30)),
    ("control-only", FAILS, levels("packet_size", SMALL, 60) + levels("goodput_packets", LAN, 80)),
    ("publish-bin", HOLDS, levels("publish_packets", LARGE, 100)),
    ("publish-bin", FAILS, levels("publish_packets", LARGE, 90)),
    ("goodput-qos1", HOLDS, levels("goodput_packets", LAN, 50, 30)),
    ("goodput-qos1", FAILS, levels("goodput_packets", LAN, 30, 50)),
    ("goodput-qos1", OPEN, levels("goodput_packets", LAN, 30)),
    ("table-ii-node", HOLDS, levels("cpu", PUBLISHER, 0.971, 0.977, 1.022, half=0.001)),
    ("table-ii-node", OPEN, levels("cpu", PUBLISHER, 0.971, 0.977, 1.022, half=0.01)),
    ("table-ii-host", HOLDS, levels("host_busy", LAB, 69.0, 69.7, 71.1)),
    ("table-ii-node-values", OPEN, levels("cpu", PUBLISHER, 0.971, 0.977, 1.022)),
    ("table-ii-host-values", OPEN, levels("host_busy", LAB, 69.0, 69.7, 71.1)),
    ("single-subscriber-overwhelmed", OPEN, []),
    ("step-subscriber-cpu", HOLDS, levels("cpu", SUBSCRIBER, 1.0, 1.1, 1.5)),
    ("step-subscriber-cpu", FAILS, levels("cpu", SUBSCRIBER, 1.0, 1.4, 1.5)),
    (
        "step-subscriber-net",
        HOLDS,
        levels("received", SUBSCRIBER, 8, 9, 12) + levels("sent", SUBSCRIBER, 8, 9, 12),
    ),
    (
        "step-subscriber-net",
        FAILS,
        levels("received", SUBSCRIBER, 8, 9, 10) + levels("sent", SUBSCRIBER, 8, 9, 10),
    ),
    (
        "least-to-most-bandwidth",
        HOLDS,
        levels("received", SUBSCRIBER, 8, 9, 12) + levels("sent", SUBSCRIBER, 8, 9, 12),
    ),
    (
        "least-to-most-bandwidth",
        FAILS,
        levels("received", SUBSCRIBER, 9, 8, 7) + levels("sent", SUBSCRIBER, 9, 8, 7),
    ),
    ("table-ii-host", FAILS, levels("host_busy", LAB, 71.0, 69.7, 71.1)),
]


IDS = [f"{key}-{word}-{i}" for i, (key, word, _) in enumerate(CASES)]


@pytest.mark.parametrize(("key", "expected", "rows"), CASES, ids=IDS)
def test_verdict(key: str, expected: str, rows: list[Row]) -> None:
    claim = next(c for c in CLAIMS.claims if c.key == key)
    judged = claim.judge(Crafted(rows))
    assert judged.verdict == expected, judged.reason
    assert judged.reason


def test_every_claim_is_tried_both_ways_or_open() -> None:
    tried = {key for key, _, _ in CASES}
    assert tried == {claim.key for claim in CLAIMS.claims}


def test_values_that_depend_on_the_number_of_clients_need_the_papers_number() -> None:
    rows = levels("cpu", SUBSCRIBER, 3.0) + levels("cpu", PUBLISHER, 0.5)
    claim = next(c for c in CLAIMS.claims if c.key == "subscriber-cpu")
    judged = claim.judge(Crafted(rows, clients=31))
    assert judged.verdict == OPEN and "350 clients" in judged.reason


def test_outer_machine_is_preferred_for_the_host() -> None:
    rows = levels("host_busy", LAB, 71.0, 69.7, 71.1) + levels("host_busy", OUTER, 69.0, 69.7, 71.1)
    claim = next(c for c in CLAIMS.claims if c.key == "table-ii-host")
    assert claim.judge(Crafted(rows)).verdict == HOLDS


def test_contrast_adds_half_widths_in_squares() -> None:
    a, b = Value(5.0, 2.0, 8.0, "u"), Value(0.0, -4.0, 4.0, "u")  # sqrt(3^2 + 4^2) = 5
    assert positive([(1, a), (-1, b)], "r").verdict == OPEN
    assert positive([(1, Value(5.1, 2.1, 8.1, "u")), (-1, b)], "r").verdict == HOLDS
    assert positive([(-1, Value(5.1, 2.1, 8.1, "u")), (1, b)], "r").verdict == FAILS
    alone = positive([(1, Value(1.0, None, None, "u"))], "r")
    assert alone == Judgement(OPEN, "r; no interval is known, so it needs more runs")


def test_a_failing_part_decides_over_an_open_one() -> None:
    parts = [("a", Judgement(HOLDS, "x")), ("b", Judgement(OPEN, "y")), ("c", Judgement(FAILS, "z"))]
    assert together(parts).verdict == FAILS
    assert together(parts[:2]).verdict == OPEN
    assert together(parts[:1]).verdict == HOLDS


def test_cpu_counted_in_ticks_is_not_judged() -> None:
    rows = levels("cpu", BROKER, 1.0, 1.1, 1.5) + levels("host_busy", LAB, 69.0, 69.7, 71.1)
    found = {claim.key: claim.judge(Crafted(rows, ticked=True)) for claim in CLAIMS.claims}
    assert found["cpu-qos-1"] == Judgement(
        OPEN, "needs a kernel that counts CPU finer than in ticks of 10 ms"
    )
    assert found["table-ii-host"].verdict == HOLDS


def judged_of(study: Study) -> dict[str, Judgement]:
    paper = paper_of(study)
    assert paper is not None
    return {key: judgement for key, (_, judgement) in paper.judged(study).items()}


def test_one_run_leaves_claims_over_levels_open(tmp_path: Path) -> None:
    judged = judged_of(study_of_run(write_run(tmp_path / "run", Shape())))
    assert judged["cpu-qos-1"] == Judgement(OPEN, "needs the broker's CPU in scenario 1 at QoS 0, 2")
    assert judged["cpu-clients-1"].verdict == HOLDS


def test_a_run_without_a_reference_has_no_paper(tmp_path: Path) -> None:
    assert paper_of(study_of_run(write_run(tmp_path / "run", Shape(reference=False)))) is None


def test_the_level_is_known_from_the_promise_where_no_parameter_tells(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(qos=2, hold_s=20))
    for name in ("plan.json", "manifest.json"):
        text = json.loads((run / name).read_text())
        (run / name).write_text(json.dumps(text | {"parameters": {}}))
    cell = study_of_run(run).cells[0]
    assert CLAIMS.factor.level_of(cell) == 2
    assert Factor("qos", "level", (0, 1, 2)).level_of(cell) is None


def test_campaign_of_three_levels(tmp_path: Path) -> None:
    shapes = [Shape(qos=q, seed=r) for q in (0, 1, 2) for r in (1, 2)]
    judged = judged_of(study_of_campaign(write_campaign(tmp_path / "c", shapes)))
    assert judged["small-packets"].verdict == HOLDS
    assert judged["goodput-qos1"].verdict == FAILS
    assert judged["rates-match"].verdict == OPEN
