"""Every verdict of every rule is reachable, on crafted numbers."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from synthetic import write_campaign, write_run
from synthetic_shape import Shape

from reports.claims.evidence import Evidence
from reports.claims.mqtt import CLAIMS, judge_all
from reports.claims.verdict import FAILS, HOLDS, OPEN, Judgement, Value, positive, together
from reports.metrics.compare import SCHEMA
from reports.study import Study, study_of_campaign, study_of_run

ONE, TWO = "scenario 1", "scenario 2"


class Crafted(Evidence):
    """Evidence from a table of values instead of runs."""

    def __init__(self, rows: list[tuple[str, int, str, str, float, float]], clients: int = 351) -> None:
        table = [
            (s, f"QoS {q}", q, name, scope, v, v - half, v + half, "u", 10, 1, "")
            for s, q, name, scope, v, half in rows
        ]
        super().__init__(Study("crafted", Path("nowhere"), (), False))
        self.table = pl.DataFrame(table, schema=SCHEMA, orient="row")
        self._capture = "lan"
        self._clients = clients

    def clients(self, scenario: str) -> int:
        return self._clients

    def curve(self, scenario: str, qos: int, quantities: tuple[str, ...]) -> pl.DataFrame:
        rows = self.table.filter((pl.col("name") == "curve") & (pl.col("qos") == qos)).sort("scope")
        return rows.select(step=pl.int_range(pl.len()), clients=pl.int_range(pl.len()), value="value")


def levels(name: str, scope: str, *values: float, half: float = 0.01, scenario: str = ONE):  # type: ignore[no-untyped-def]
    return [(scenario, q, name, scope, v, half) for q, v in enumerate(values)]


def curve(*values: float):  # type: ignore[no-untyped-def]
    return [(ONE, 0, "curve", f"{i:02d}", v, 0.0) for i, v in enumerate(values)]


BIN_S, BIN_L = "lan 40-79", "lan 640-1279"
CASES = [
    ("cpu-clients-1", HOLDS, curve(1, 2, 3, 4, 5, 6)),
    ("cpu-clients-1", FAILS, curve(6, 5, 4, 3, 2, 1)),
    ("cpu-clients-1", OPEN, curve(1, 2, 3)),
    ("cpu-clients-1", OPEN, curve(1, 3, 0, 2, 4, 3)),
    ("net-clients-1", HOLDS, curve(1, 2, 3, 4, 5, 6)),
    ("cpu-qos-1", HOLDS, levels("cpu", "broker", 1.0, 1.1, 1.5)),
    ("cpu-qos-1", FAILS, levels("cpu", "broker", 1.0, 1.1, 0.5)),
    ("cpu-qos-1", OPEN, levels("cpu", "broker", 1.0, 1.1, 1.5, half=0.2)),
    ("cpu-qos-1", OPEN, levels("cpu", "broker", 1.0, 1.1)),
    ("cpu-step-1", HOLDS, levels("cpu", "broker", 1.0, 1.1, 1.5)),
    ("cpu-step-1", FAILS, levels("cpu", "broker", 1.0, 1.4, 1.5)),
    ("cpu-step-1", OPEN, levels("cpu", "broker", 1.0, 1.1, 1.3, half=0.05)),
    ("net-qos-1", HOLDS, levels("received", "broker", 8, 9, 12) + levels("sent", "broker", 8, 9, 12)),
    ("net-qos-1", FAILS, levels("received", "broker", 9, 8, 7) + levels("sent", "broker", 9, 8, 7)),
    ("net-step-1", HOLDS, levels("received", "broker", 8, 9, 12) + levels("sent", "broker", 8, 9, 12)),
    ("net-step-1", FAILS, levels("received", "broker", 8, 9, 10) + levels("sent", "broker", 8, 9, 10)),
    (
        "receives-more",
        HOLDS,
        levels("received", "broker", 9)
        + levels("sent", "broker", 8)
        + levels("received_minus_sent", "broker", 1),
    ),
    (
        "receives-more",
        FAILS,
        levels("received", "broker", 8)
        + levels("sent", "broker", 9)
        + levels("received_minus_sent", "broker", -1),
    ),
    ("receives-more", OPEN, []),
    ("subscriber-cpu", HOLDS, levels("cpu", "subscriber", 3.0) + levels("cpu", "publisher", 0.5)),
    ("subscriber-cpu", FAILS, levels("cpu", "subscriber", 30.0) + levels("cpu", "publisher", 0.5)),
    ("subscriber-cpu", OPEN, levels("cpu", "subscriber", 30.0)),
    (
        "subscriber-net",
        HOLDS,
        levels("received", "subscriber", 80)
        + levels("sent", "subscriber", 5)
        + levels("received", "publisher", 0.02)
        + levels("sent", "publisher", 0.23),
    ),
    ("publisher-net", HOLDS, levels("received", "publisher", 0.2) + levels("sent", "publisher", 0.4)),
    ("publisher-net", FAILS, levels("received", "publisher", 0.02) + levels("sent", "publisher", 0.2)),
    ("cpu-scenarios", HOLDS, levels("cpu", "broker", 1.0) + levels("cpu", "broker", 1.1, scenario=TWO)),
    ("cpu-scenarios", FAILS, levels("cpu", "broker", 1.0) + levels("cpu", "broker", 1.3, scenario=TWO)),
    ("cpu-scenarios", OPEN, levels("cpu", "broker", 1.0)),
    (
        "rates-match",
        HOLDS,
        levels("received", "broker", 100, scenario=TWO) + levels("sent", "broker", 99, scenario=TWO),
    ),
    (
        "rates-match",
        FAILS,
        levels("received", "broker", 100, scenario=TWO) + levels("sent", "broker", 90, scenario=TWO),
    ),
    ("rates-match", OPEN, levels("received", "broker", 100)),
    ("tcp-overhead", HOLDS, levels("packet_size", BIN_S, 81) + levels("goodput_packets", "lan", 30)),
    ("tcp-overhead", FAILS, levels("packet_size", BIN_S, 79) + levels("goodput_packets", "lan", 30)),
    ("tcp-overhead", OPEN, []),
    (
        "small-packets",
        HOLDS,
        levels("packet_size", BIN_S, 50, 70, 80) + levels("packet_size", BIN_L, 50, 30, 20),
    ),
    (
        "small-packets",
        FAILS,
        levels("packet_size", BIN_S, 50, 70, 60) + levels("packet_size", BIN_L, 50, 30, 20),
    ),
    ("small-packets", OPEN, levels("packet_size", BIN_S, 50) + levels("packet_size", BIN_L, 50)),
    ("arp-share", HOLDS, levels("arp_packets", "lan", 0.04)),
    ("arp-share", FAILS, levels("arp_packets", "lan", 0.06)),
    ("arp-share", OPEN, []),
    ("publish-bin", HOLDS, levels("publish_packets", BIN_L, 100)),
    ("publish-bin", FAILS, levels("publish_packets", BIN_L, 90)),
    ("goodput-qos1", HOLDS, levels("goodput_packets", "lan", 50, 30)),
    ("goodput-qos1", FAILS, levels("goodput_packets", "lan", 30, 50)),
    ("goodput-qos1", OPEN, levels("goodput_packets", "lan", 30)),
    ("table-ii-node", HOLDS, levels("cpu", "publisher", 0.971, 0.977, 1.022, half=0.001)),
    ("table-ii-node", OPEN, levels("cpu", "publisher", 0.971, 0.977, 1.022, half=0.01)),
    ("table-ii-host", HOLDS, levels("host_busy", "lab", 69.0, 69.7, 71.1)),
    ("table-ii-host", FAILS, levels("host_busy", "lab", 71.0, 69.7, 71.1)),
]


IDS = [f"{key}-{word}-{i}" for i, (key, word, _) in enumerate(CASES)]


@pytest.mark.parametrize(("key", "expected", "rows"), CASES, ids=IDS)
def test_verdict(key: str, expected: str, rows) -> None:  # type: ignore[no-untyped-def]
    claim = next(c for c in CLAIMS if c.key == key)
    judged = claim.judge(Crafted(rows))
    assert judged.verdict == expected, judged.reason
    assert judged.reason


def test_every_claim_is_tried_both_ways_or_open() -> None:
    tried = {key for key, _, _ in CASES}
    assert tried == {claim.key for claim in CLAIMS}


def test_values_that_depend_on_the_number_of_clients_need_the_papers_number() -> None:
    rows = levels("cpu", "subscriber", 3.0) + levels("cpu", "publisher", 0.5)
    claim = next(c for c in CLAIMS if c.key == "subscriber-cpu")
    judged = claim.judge(Crafted(rows, clients=31))
    assert judged.verdict == OPEN and "350 clients" in judged.reason


def test_outer_machine_is_preferred_for_the_host() -> None:
    rows = levels("host_busy", "lab", 71.0, 69.7, 71.1) + levels("host_busy", "outer", 69.0, 69.7, 71.1)
    claim = next(c for c in CLAIMS if c.key == "table-ii-host")
    assert claim.judge(Crafted(rows)).verdict == HOLDS


def test_contrast_adds_half_widths_in_squares() -> None:
    a, b = Value(5.0, 2.0, 8.0, "u"), Value(0.0, -4.0, 4.0, "u")  # sqrt(3^2 + 4^2) = 5
    assert positive([(1, a), (-1, b)], "r").verdict == OPEN
    assert positive([(1, Value(5.1, 2.1, 8.1, "u")), (-1, b)], "r").verdict == HOLDS
    assert positive([(-1, Value(5.1, 2.1, 8.1, "u")), (1, b)], "r").verdict == FAILS
    alone = positive([(1, Value(1.0, None, None, "u"))], "r")
    assert alone.verdict == HOLDS and "no interval" in alone.reason


def test_a_failing_part_decides_over_an_open_one() -> None:
    parts = [("a", Judgement(HOLDS, "x")), ("b", Judgement(OPEN, "y")), ("c", Judgement(FAILS, "z"))]
    assert together(parts).verdict == FAILS
    assert together(parts[:2]).verdict == OPEN
    assert together(parts[:1]).verdict == HOLDS


def test_one_run_leaves_claims_over_levels_open(tmp_path: Path) -> None:
    judged = judge_all(Evidence(study_of_run(write_run(tmp_path / "run", Shape()))))
    assert judged["cpu-qos-1"][1] == Judgement(OPEN, "needs the broker's CPU in scenario 1 at QoS 0, 2")
    assert judged["cpu-clients-1"][1].verdict == HOLDS


def test_a_run_of_another_lab_is_not_measured_by_the_papers_claims(tmp_path: Path) -> None:
    judged = judge_all(Evidence(study_of_run(write_run(tmp_path / "run", Shape(reference=False)))))
    assert {j.verdict for _, j in judged.values()} == {OPEN}


def test_campaign_of_three_levels(tmp_path: Path) -> None:
    shapes = [Shape(qos=q, seed=r) for q in (0, 1, 2) for r in (1, 2)]
    judged = judge_all(Evidence(study_of_campaign(write_campaign(tmp_path / "c", shapes))))
    assert judged["small-packets"][1].verdict == HOLDS
    assert judged["goodput-qos1"][1].verdict == FAILS
    assert judged["rates-match"][1].verdict == OPEN
