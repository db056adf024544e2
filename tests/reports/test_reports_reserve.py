"""Tests the report of RESERVE's deliverable: data for which each claim holds and data for which it fails, box
plots, and the hierarchy of crafted packets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from contract.manifest import Manifest
from contract.plan import NO_PLAN
from reports.cell import Cell
from reports.claims.evidence import Evidence
from reports.claims.verdict import FAILS, GIVEN, HOLDS
from reports.figures.spec import CannotDrawError
from reports.metrics.compare import SCHEMA
from reports.metrics.metric import OF
from reports.papers import PAPERS
from reports.papers.reserve import boxes, clocks, highest, recovery, stacks, tables
from reports.papers.reserve.efficiency import COMBINATIONS, LAYERS, efficiency_metrics
from reports.rundir import Run
from reports.study import Study

PAPER = PAPERS["reserve"]
TOPOLOGIES = Path(__file__).resolve().parents[2] / "topologies" / "papers"
CLAIMS = PAPER.claims()
RATES = CLAIMS.factor.levels
Figures = dict[str, tuple[float, float, float]]  # values at 10, 100 and 1,000 messages/s


def same(value: float) -> tuple[float, float, float]:
    return (value, value, value)


CASES: dict[str, tuple[Figures, Figures]] = {
    "ethernet-udp-lowest": (
        {"eth_amqp": same(0.4), "eth_mqtt": same(0.5), "eth_udp": same(0.1)},
        {"eth_amqp": same(0.4), "eth_mqtt": (0.5, 0.5, 0.09), "eth_udp": same(0.1)},
    ),
    "ethernet-falls": ({"eth_amqp": (0.45, 0.4, 0.3)}, {"eth_amqp": (0.3, 0.4, 0.45)}),
    "ethernet-mqtt-above-amqp": (
        {"eth_mqtt": same(0.9), "eth_amqp": same(0.4)},
        {"eth_mqtt": (0.9, 0.9, 0.3), "eth_amqp": same(0.4)},
    ),
    "lte-range": ({"lte_amqp": (25, 20, 15)}, {"lte_amqp": (25, 20, 26)}),
    "lte-variance": ({"lte_amqp_sd": (3, 3, 9)}, {"lte_amqp_sd": (9, 9, 3)}),
    "lte-worst": (
        {"lte_amqp_worst": (100, 200, 380), "lte_sv_worst": same(76)},
        {"lte_amqp_worst": same(80), "lte_sv_worst": same(76)},
    ),
    "lte-amqp-worse-than-mqtt": (
        {"lte_amqp_worst": same(380), "lte_mqtt_worst": same(300)},
        {"lte_amqp_worst": (380, 380, 200), "lte_mqtt_worst": same(300)},
    ),
    "no-loss": (
        {f"lte_{protocol}_lost": same(0) for protocol in ("amqp", "mqtt", "sv")},
        {"lte_amqp_lost": same(0), "lte_mqtt_lost": same(0), "lte_sv_lost": (0, 0, 1)},
    ),
    "nr-up": ({"nr_amqp_up": (6.5, 4, 2.5)}, {"nr_amqp_up": (6.5, 4, 2.4)}),
    "nr-down": ({"nr_amqp_down": (7, 4, 1.5)}, {"nr_amqp_down": (7.1, 4, 1.5)}),
    "nr-below-lte": (
        {"lte_amqp": same(20), "nr_amqp_up": same(5)},
        {"lte_amqp": same(20), "nr_amqp_up": (5, 5, 11)},
    ),
    "sv-lightest": (
        {"sv": same(98), "mqtt_protobuf": same(425)},
        {"sv": same(128), "mqtt_protobuf": same(425)},
    ),
    "amqp-overhead": (
        {"amqp_json": same(993), "amqp_json_payload": same(612)},
        {"amqp_json": same(700), "amqp_json_payload": same(612)},
    ),
    "acknowledgements": (
        {"mqtt_packets": same(2), "amqp_packets": same(3.5), "sv_packets": same(1)},
        {"mqtt_packets": same(1.1), "amqp_packets": same(3.5), "sv_packets": same(1)},
    ),
    "default-not-reliable": (
        {"default_amqp": same(90), "default_mqtt": same(0)},
        {"default_amqp": same(0), "default_mqtt": same(0)},
    ),
    "sv-resumes": (
        {"sv_never": same(101), "sv_within": same(100)},
        {"sv_never": same(300), "sv_within": same(100)},
    ),
    "protobuf-saves": (
        {"mqtt_protobuf": same(425), "mqtt_json": same(754)},
        {"mqtt_protobuf": same(700), "mqtt_json": same(754)},
    ),
}


class Crafted(Evidence):
    """Evidence from figures by the names of claims.yaml, with one value for each rate."""

    def __init__(self, figures: Figures) -> None:
        super().__init__(Study("crafted", Path("nowhere"), (), False), CLAIMS.factor)
        rows = []
        for name, values in figures.items():
            quantity = CLAIMS.quantities[name]
            for rate, value in zip(RATES, values, strict=True):
                self.series[quantity.scenario, rate] = str(rate)
                of = (getattr(quantity.of[0], field) for field in OF)
                rows.append(
                    (quantity.scenario, str(rate), quantity.metric, *of, value, value, value, "u", 5, 5, "")
                )
        self.table = pl.DataFrame(rows, schema=SCHEMA, orient="row")


@pytest.mark.parametrize("key", CASES)
def test_each_claim_holds_and_fails(key: str) -> None:
    claim = next(claim for claim in CLAIMS.claims if claim.key == key)
    held, failed = (claim.judge(Crafted(figures)) for figures in CASES[key])
    assert (held.verdict, failed.verdict) == (GIVEN if claim.set_up else HOLDS, FAILS), (held, failed)


def run(captures: dict[str, Path], messages: pl.DataFrame, parameters: dict[str, Any]) -> Run:
    made = {"parameters": parameters}
    return Run(
        Path("nowhere"),
        lambda: NO_PLAN,
        lambda: Manifest.of(made),
        list,
        {"messages": messages},
        captures,
        (),
    )


def study(one: Run, name: str = "efficiency") -> Study:
    return Study("crafted", Path("nowhere"), (Cell(one, [], name, {}, "s"),), True)


def packet(app: str | None, protocol: str | None, *sizes: int) -> dict[str, Any]:
    columns = (*LAYERS, "pad_bytes")
    return {
        "app": app,
        "protocol": protocol,
        **dict(zip(columns, sizes, strict=True)),
        "wire_bytes": sum(sizes),
    }


def efficient(directory: Path) -> Run:
    """Returns a run with two measurements 10 ms apart by each combination; the devices also capture foreign
    Sampled Values and ARP.
    """
    strangers = [packet("sv", None, 14, 0, 0, 44, 40, 0), packet(None, "arp", 14, 28, 0, 0, 0, 18)]
    both_ways = [packet("mqtt", "tcp", 14, 20, 32, 8, 289, 0)] * 4 + [
        packet(None, "tcp", 14, 20, 32, 0, 0, 0)
    ] * 2
    captures = {}
    for name in COMBINATIONS:
        rows = strangers * 2 if name == "sv" else [*both_ways, *strangers]
        captures[name] = directory / f"{name}.parquet"
        pl.DataFrame(rows).write_parquet(captures[name])
    due = [
        (number, seq, name, 10_000_000 * seq) for number, name in enumerate(COMBINATIONS) for seq in range(2)
    ]
    messages = pl.DataFrame(due, schema=["flow", "seq", "class", "scheduled_ns"], orient="row")
    return run(captures, messages, {})


def test_a_measurement_is_what_its_device_sends_and_gets(tmp_path: Path) -> None:
    found = {(m.name, m.of.capture, m.of.layer): m.value for m in efficiency_metrics(efficient(tmp_path))}
    assert found["measurement_packets", "mqtt-json", None] == 3
    assert found["measurement_bytes", "mqtt-json", None] == 2 * 363 + 66
    assert found["measurement_layer", "mqtt-json", "app_bytes"] == 16
    assert found["measurement_payload", "mqtt-json", None] == 578
    assert (found["measurement_bytes", "sv", None], found["measurement_packets", "sv", None]) == (98, 1)
    assert found["efficiency_rate", "sv", None] == 98 * 2 * 8 / 1024 / 0.02


def test_tables_and_bars_have_measured_beside_printed(tmp_path: Path) -> None:
    made = study(efficient(tmp_path))
    fourth, fifth = tables.tables(made)
    assert fourth.rows[0][:5] == ("packets", "6", "20,017", "6", "34,891")
    rows = {row[0]: row for row in fifth.rows}
    assert rows["total"][5:7] == ("98", "98") and rows["IPv4"][5:7] == ("none", "none")
    assert rows["protocol and payload"][2] == "622"
    bars = stacks.data(made)
    assert bars.filter(source="D4.6", combination="AMQP + JSON")["bytes"].sum() == 993
    assert bars.filter(source="measured", combination="Sampled Values")["bytes"].sum() == 98
    assert stacks.draw(bars, made).to_dict()
    assert tables.tables(study(run({}, pl.DataFrame(), {}))) == ()


def test_boxes_are_those_of_the_annex() -> None:
    latencies = [(f"uplink-{p}", 0, n * 1_000_000) for p in ("amqp", "sv") for n in range(101)]
    latencies += [("uplink-amqp", 0, None), ("flood", 0, 5)]
    messages = pl.DataFrame(latencies, schema=["class", "scheduled_ns", "latency_ns"], orient="row")
    said = {"system": "lte", "rate": 100, "signals": 10, "traffic": "ideal"}
    made = study(run({}, messages, said), "latency lte 10 ideal")
    (figure,) = (spec for spec in PAPER.figures(made) if spec.key == "figure-7")
    frame = figure.data(made)
    assert frame["protocol"].to_list() == ["AMQP", "SV"]
    row = frame.row(0, named=True)
    names = ("low", "first", "mean", "third", "high", "worst", "messages")
    assert [row[name] for name in names] == pytest.approx([2, 25, 50, 75, 98, 100, 101])
    assert figure.draw(frame, made).to_dict()
    with pytest.raises(CannotDrawError, match="Ethernet"):
        boxes.chosen("Ethernet", "uplink")(made)


def test_what_an_outage_took_and_when_it_was_over() -> None:
    """Shows, for a cut from 10 to 20 s and a message a second, that two classes lose the messages due and the
    others get them late.
    """
    second = 1_000_000_000
    rows: list[tuple[str, str, int, int | None]] = []
    for name in recovery.CLASSES:
        for due in range(30):
            cut = 10 <= due < 20
            got = due + 0.02 if not cut else None if name in ("sv", "udp") else 21.5
            rows.append((name, "r", due * second, None if got is None else int(got * second)))
    messages = pl.DataFrame(
        rows, schema=["class", "receiver", "scheduled_ns", "received_ns"], orient="row"
    ).with_columns(latency_ns=pl.col("received_ns") - pl.col("scheduled_ns"))  # fmt: skip
    at = [10 * second - 1, 20 * second - 1]
    events = pl.DataFrame({"t_ns": at, "action": ["link-down", "link-up"], "ok": [True, True]})
    one = Run(
        Path("nowhere"), lambda: NO_PLAN, Manifest, list, {"messages": messages, "events": events}, {}, ()
    )
    made = study(one, "recovery lte")
    (table,) = recovery.tables(made)
    body = {row[0]: row[1:] for row in table.rows}
    assert body["AMQP, default settings"] == ("0", "10", "0.02", "1.5")
    assert body["Sampled Values"] == ("10", "10", "0.02", "none")
    frame = recovery.data(made)
    assert frame["lost"].sum() == 20 and set(frame["class"]) == set(recovery.CLASSES.values())
    assert frame.filter(pl.col("at") < 0)["lost"].sum() == 0
    assert recovery.draw(frame, made).to_dict()


def test_clock_errors_are_what_the_programs_say(tmp_path: Path) -> None:
    logs = tmp_path / "raw" / "logs"
    logs.mkdir(parents=True)
    said = [
        f"2026-01-01T00:00:0{n}Z System clock wrong by -0.00{n}000 seconds (ignored)" for n in range(1, 6)
    ]
    (logs / "device.clock.log").write_text("\n".join(["chronyd starting", *said]))
    (logs / "device.sntp.log").write_text("no answer\n")
    ahead = [f"ptp4l[1{n}.9]: master offset {2_000_000 * n:10} s0 freq -5 path delay 19" for n in (1, 2, 3)]
    before = "ptp4l[9.9]: master offset 77 s0 freq -5 path delay         0"
    (logs / "device.ptp.log").write_text("\n".join([before, *ahead]))
    made = study(Run(tmp_path, lambda: NO_PLAN, Manifest, list, {}, {}, ()), "clock lte")
    ((row, by_ptp),) = (table.rows for table in clocks.tables(made))
    assert row[0] == "clock lte, s, chronyd, the kernel's time stamps"
    assert row[1].startswith("-3") and row[4] == "5"
    assert by_ptp[0] == "clock lte, s, ptp4l, the kernel's time stamps"
    assert by_ptp[1].startswith("-4") and by_ptp[4] == "6", "its clock is fast, as chronyd would say it"


def test_the_highest_rate_is_what_held_below_the_least_that_failed() -> None:
    """Shows the highest rates if AMQP loses from 2,000/s on, SV is slow at 2,000/s in one direction, MQTT
    holds and UDP fails at once.
    """
    fails = {"amqp": (2000, 4000), "mqtt": (), "udp": (1000, 2000, 4000), "sv": (2000,)}
    columns = ["class", "receiver", "scheduled_ns", "received_ns", "latency_ns"]
    cells = []
    for rate in (1000, 2000, 4000):
        rows = []
        for protocol, bad in fails.items():
            lost, slow = rate in bad and protocol != "sv", rate in bad and protocol == "sv"
            rows += [(f"uplink-{protocol}", "r", 0, 1, 20_000_000)] * 3
            rows.append((f"uplink-{protocol}", "r", 0, None if lost else 1, None if lost else 20_000_000))
            rows += [(f"downlink-{protocol}", "r", 0, 1, 200_000_000 if slow else 20_000_000)] * 4
        messages = pl.DataFrame(rows, schema=columns, orient="row")
        said = {"system": "lte", **{f"{protocol}_rate": rate for protocol in fails}}
        cells.append(Cell(run({}, messages, said), [], "", {}, f"rate {rate}"))
    (table,) = highest.tables(Study("crafted", Path("nowhere"), tuple(cells), False))
    assert table.head == ("", "5G-ready (LTE)", "what failed above")
    assert table.rows == (
        ("AMQP", "1,000", "2,000: 25 % never arrived"),
        ("MQTT", "at least 4,000", ""),
        ("UDP", "below 1,000", "1,000: 25 % never arrived"),
        ("SV", "1,000", "2,000: 99th percentile 200 ms"),
    )


@pytest.mark.parametrize("file", sorted(TOPOLOGIES.glob("reserve-*.yaml")), ids=lambda file: file.stem)
def test_each_lab_of_the_tests_is_compared_with_the_deliverable(file: Path) -> None:
    asked = yaml.safe_load(file.read_text())
    labs = [TOPOLOGIES / lab for lab in asked.get("campaign", {}).get("topologies", ())] or [file]
    assert [yaml.safe_load(lab.read_text())["reference"]["name"] for lab in labs] == ["reserve"] * len(labs)
