"""Tests metrics against values computed by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.stats
from synthetic import run_of, write_run
from synthetic_shape import CLASS, S, Shape
from synthetic_tables import MESSAGES as SCHEMA
from synthetic_tables import PACKETS

from reports.metrics import compare, stats
from reports.metrics.delivery import delivery
from reports.metrics.load import interval_ns, within
from reports.metrics.messages import _spread, by_guarantee, counts, latency_metrics
from reports.metrics.metric import Of, count, find
from reports.metrics.packets import packet_metrics
from reports.metrics.ramp import against_clients, connected
from reports.metrics.sizes import BIN_NAMES, sizes
from reports.metrics.summary import summarise
from reports.metrics.throughput import throughput_metrics
from reports.numbers import measured, plain, plus_minus
from reports.roles import Span, phases
from reports.rundir import RunDirectoryError, read_run


def test_t_interval_by_hand() -> None:
    # values 1, 2, 3: mean 2, s = 1, t(0.975, 2) = 4.302653, half the interval = 4.302653 / sqrt(3)
    found = stats.t_interval([1.0, 2.0, 3.0], "repetition")
    half = 4.302652729911275 / math.sqrt(3)
    assert found.value == 2.0 and found.n == 3
    assert found.low == pytest.approx(2 - half) and found.high == pytest.approx(2 + half)


def test_one_value_has_no_interval_and_says_so() -> None:
    found = stats.t_interval([5.0], "repetition")
    assert (found.value, found.low, found.high) == (5.0, None, None)
    assert "no interval" in found.method


@pytest.mark.parametrize("counts", [(30.0, 44.0), (5.0, 6.0, 7.0), (1.0, 0.0)])
def test_counts_have_the_exact_interval_of_a_poisson_law(counts: tuple[float, ...]) -> None:
    found, total, n = stats.poisson_interval(counts, "repetition"), sum(counts), len(counts)
    assert found.low == pytest.approx(scipy.stats.chi2.ppf(0.025, 2 * total) / 2 / n)
    assert found.high == pytest.approx(scipy.stats.chi2.ppf(0.975, 2 * total + 2) / 2 / n)
    assert found.method == f"mean count, exact Poisson interval over {n} repetitions"


def test_counts_of_nothing_are_open_above_and_one_count_has_no_interval() -> None:
    none = stats.poisson_interval([0.0, 0.0], "repetition")
    assert (none.value, none.low, none.high) == (0.0, 0.0, pytest.approx(-math.log(0.025) / 2))
    assert stats.poisson_interval([7.0], "repetition").low is None


def test_bursts_scatter_more_than_a_poisson_law_and_get_a_wider_interval() -> None:
    """Shows that counts with more scatter than a Poisson distribution (24 and 50) get an interval above zero
    that contains both. Student's interval (37 +- 165) reaches far below zero, and the Poisson interval (29 to
    46) contains neither count.
    """
    found = stats.poisson_interval([24.0, 50.0], "repetition")
    assert found.low and found.high and 0 < found.low < 24 and 50 < found.high < 80
    assert "9.14 times as scattered" in found.method


def test_what_chance_counts_has_a_poisson_interval_over_repetitions_and_amounts_have_not() -> None:
    def over(name: str, unit: str, *values: float) -> dict[str, Any]:
        found = [count(name, Of(), value, unit, 9, "count") for value in values]
        return dict(zip(compare.SCHEMA, compare.row(("s", "x", name, Of()), found), strict=True))

    lost = over("messages_lost", "messages", 30, 44)
    assert measured(37, lost["low"], lost["high"], lost["method"]) == "37 (29 to 46)"
    assert over("messages_scheduled", "messages", 300, 300)["low"] == 300
    assert "t interval" in over("latency_max", "ms", 3, 4)["method"]


def test_batch_means_by_hand() -> None:
    # ten batches of two: means 0.5, 2.5, ... 18.5; mean 9.5, s of the means = 2 * sqrt(55 / 6)
    found = stats.batch_means([float(i) for i in range(20)])
    half = 2.2621571627409915 * 2 * math.sqrt(55 / 6) / math.sqrt(10)
    assert found.value == 9.5
    assert found.high == pytest.approx(9.5 + half)
    assert stats.batch_means([1.0] * 19).method == "mean, t interval over 9 batch means"
    assert stats.batch_means([1.0] * 9).low is None


def test_percentiles_are_nearest_ranks_with_ranks_from_the_binomial_law() -> None:
    values = np.arange(1.0, 101.0)
    median = stats.percentile(values, 0.5)
    assert median.value == 50.0
    # For a median of 100 values (binomial, 0.5), ranks 40 and 61 give at least 95 % (Conover, Practical
    # Nonparametric Statistics).
    assert (median.low, median.high) == (40.0, 61.0)
    assert stats.percentile(values, 0.99).high is None


@pytest.mark.parametrize("n", [1, 2, 39, 100, 54_321, 1_621_738])
@pytest.mark.parametrize("chance", [0.5, 0.99, 0.999])
def test_quantiles_of_the_binomial_law_are_exact(n: int, chance: float) -> None:
    law = scipy.stats.binom(n, chance)
    for p in (0.025, 0.975):
        assert stats.binomial_quantile(p, n, chance) == law.ppf(p)


def test_ratio_of_sums_is_not_the_mean_of_ratios() -> None:
    assert stats.ratio_batches([1.0, 9.0], [2.0, 10.0]).value == pytest.approx(10 / 12)


REQUESTS = ("replied_ns", "round_trip_ns", "late")


def sent(flow: int, seq: int, at: int, outcome: str, receiver: str | None, received: int | None, copies: int):  # type: ignore[no-untyped-def]
    """Returns a row of messages.parquet, sent 1 ns after it was due; flow a has class x, flow b class y."""
    return {
        "flow": flow,
        "class": "xy"[flow],
        "pattern": "publish",
        "guarantee": None if receiver is None else "once",
        "receiver": receiver,
        "seq": seq,
        "scheduled_ns": at,
        "sent_ns": None if outcome == "dropped" else at + 1,
        "outcome": outcome,
        "received_ns": received,
        "latency_ns": None if received is None else received - at,
        "copies": copies,
        "reordered": False,
    }


MESSAGES = pl.DataFrame(
    [
        sent(0, 0, 10, "settled", "s", 20, 1),
        sent(0, 1, 30, "settled", "s", 50, 2),  # delivered twice
        sent(0, 2, 40, "settled", "s", None, 0),  # lost
        sent(0, 3, 50, "dropped", "s", None, 0),  # never sent: not lost
        sent(1, 0, 60, "sent", "s", 70, 1) | {"reordered": True},
        sent(1, 0, 60, "sent", "z", 71, 1),  # a second receiver of the same message
        sent(1, 1, 80, "sent", None, None, 0),  # nobody had subscribed to it yet
    ],
    schema={k: v for k, v in SCHEMA.items() if k in sent(0, 0, 0, "", "", 0, 0) or k in REQUESTS},
)


def test_every_message_is_accounted_for() -> None:
    assert counts(MESSAGES) == {
        "scheduled": 6, "sent": 5, "settled": 3, "unsent": 1, "expected": 5,
        "received": 4, "lost": 1, "duplicated": 1, "reordered": 1,
    }  # fmt: skip


def test_what_was_received_was_expected_and_what_was_answered_was_received() -> None:
    rows = [
        sent(0, 0, 10, "unsent", "s", 20, 1) | {"sent_ns": None},  # sent, but not to all of its receivers
        sent(0, 0, 10, "unsent", "z", None, 0) | {"sent_ns": None},
        sent(0, 1, 30, "settled", "s", None, 0) | {"pattern": "request", "replied_ns": 40},
        sent(0, 2, 50, "unsettled", "s", None, 0) | {"pattern": "request"},
    ]
    found = counts(pl.DataFrame(rows, schema=MESSAGES.schema))
    assert {name: found[name] for name in ("expected", "received", "lost", "unanswered", "unsent")} == {
        "expected": 3, "received": 2, "lost": 1, "unanswered": 1, "unsent": 1,
    }  # fmt: skip


def test_messages_are_counted_by_class_and_guarantee() -> None:
    """Shows that a message without expected receivers, and so without a guarantee, counts with its class."""
    groups = by_guarantee(MESSAGES)
    assert [(of.traffic_class, of.guarantee, rows.height) for of, rows in groups] == [
        ("x", "once", 4),
        ("y", "once", 3),
    ]


def test_requests_are_counted_by_their_replies_and_deadlines() -> None:
    asked = {"pattern": "request", "guarantee": "TCP"}
    rows = [
        sent(0, 0, 10, "settled", "s", 20, 1)
        | asked
        | {"replied_ns": 30, "round_trip_ns": 20, "late": False},
        sent(0, 1, 40, "settled", "s", 50, 1)
        | asked
        | {"replied_ns": 140, "round_trip_ns": 100, "late": True},
        sent(0, 2, 60, "unsettled", "s", 70, 1) | asked | {"late": True},
    ]
    found = counts(pl.DataFrame(rows, schema=MESSAGES.schema))
    assert (found["late"], found["unanswered"], found["lost"]) == (2, 1, 0)
    metrics = latency_metrics(run_of(messages=pl.DataFrame(rows, schema=MESSAGES.schema)))
    trip = find(metrics, "round_trip_max", Of(traffic_class="x", guarantee="TCP"))
    assert trip is not None and trip.value == pytest.approx(100e-6) and trip.unit == "ms"
    of = Of(traffic_class="x", guarantee="TCP")
    mean, deviation = find(metrics, "latency_mean", of), find(metrics, "round_trip_deviation", of)
    # The value is the mean of three values.
    assert mean is not None and mean.value == pytest.approx(10e-6) and mean.low is None
    assert deviation is not None and deviation.value == pytest.approx(80e-6 / math.sqrt(2))


def test_connected_clients_count_each_client_once() -> None:
    rows = [
        ("a", "connected", 10),
        ("b", "connected", 20),
        ("a", "disconnected", 30),
        ("a", "connected", 40),
        ("a", "connected", 45),  # the same record twice
        ("c", "failed", 50),  # this client was never connected
    ]
    table = pl.DataFrame(rows, schema=["endpoint", "what", "t_ns"], orient="row")
    steps = connected(run_of(sessions=table))
    assert steps is not None
    assert steps["clients"].to_list() == [1, 2, 1, 2, 2, 2]


def test_a_sample_counts_only_if_its_whole_interval_lies_in_the_phase() -> None:
    table = pl.DataFrame({"t_ns": [9 * S, 10 * S, 11 * S, 12 * S], "node": ["x"] * 4})
    assert interval_ns(table, "node") == S
    kept = within(table, Span("hold", 10 * S, 12 * S), S)
    assert kept["t_ns"].to_list() == [11 * S, 12 * S]


Row = tuple[int, int, str, int | None, bool, int]


def packets_at(folder: Path, rows: list[Row]) -> Path:
    columns = ("t_ns", "wire_bytes", "protocol", "payload_bytes", "retransmission", "data_bytes")
    folder.mkdir()
    path = folder / "lan.parquet"
    pl.DataFrame(rows, schema={name: PACKETS[name] for name in columns}, orient="row").write_parquet(path)
    return path


def test_packet_figures_by_hand(tmp_path: Path) -> None:
    rows: list[Row] = [
        (0, 797, "tcp", 731, False, 717),  # 14 of the bytes belong to the application protocol
        (1, 66, "tcp", 0, False, 0),
        (2, 70, "tcp", 4, False, 0),
        (3, 42, "arp", None, False, 0),
        (4, 797, "tcp", 731, True, 731),
        (5, 60, "udp", 18, False, 18),
    ]
    path = packets_at(tmp_path / "packets", rows)
    run = run_of(captures={"lan": path})
    found = {(m.name, m.of.bin): m.value for m in packet_metrics(run)}
    assert {m.of.capture for m in packet_metrics(run)} == {"lan"}
    wire, useful = 797 + 66 + 70 + 42 + 797 + 60, 717 + 18  # the retransmitted bytes count as overhead
    assert found["packets", None] == 6
    assert found["wire_bytes", None] == wire
    assert found["goodput_packets", None] == pytest.approx(100 * 3 / 6)  # UDP payload is not TCP payload
    assert found["goodput_bytes", None] == pytest.approx(100 * (731 + 4 + 731) / wire)
    assert found["application_bytes", None] == pytest.approx(100 * useful / wire)
    assert found["overhead", None] == pytest.approx(100 * (1 - useful / wire))
    assert found["arp_packets", None] == pytest.approx(100 / 6)
    assert found["retransmitted_packets", None] == pytest.approx(100 / 6)
    assert found["packet_size", "40-79"] == pytest.approx(100 * 4 / 6)


def test_sums_do_not_wrap_and_only_the_hold_counts(tmp_path: Path) -> None:
    big = 3_000_000_000
    rows: list[Row] = [(0, 60, "arp", None, False, 0), *((i, big, "tcp", 10, False, 10) for i in (10, 11))]
    path = packets_at(tmp_path / "packets", rows)
    run = run_of(manifest={"phases": {"hold": [5, 20]}}, captures={"lan": path})
    found = {m.name: m.value for m in packet_metrics(run)}
    assert (found["packets"], found["wire_bytes"]) == (2, 2 * big)
    assert found["arp_packets"] == 0.0


def test_a_rate_is_of_the_hold_and_not_of_its_packets(tmp_path: Path) -> None:
    """Shows that a burst of 2 s in a hold of 10 s gives the rate over the whole hold."""
    rows: list[Row] = [(at, 1250, "tcp", 1000, False, 1000) for at in range(3 * S, 5 * S, S // 100)]
    run = run_of(
        manifest={"phases": {"hold": [S, 11 * S]}},
        captures={"lan": packets_at(tmp_path / "packets", rows)},
    )
    found = {m.name: m.value for m in throughput_metrics(run)}
    assert (found["wire_rate"], found["payload_rate"]) == (pytest.approx(0.2), pytest.approx(0.16))


def test_the_phases_of_a_killed_run_end_with_its_samples() -> None:
    table = pl.DataFrame({"t_ns": [5 * S, 9 * S], "where": "lab"})
    manifest = {"phases": {"ramp": [S, 4 * S], "hold": [4 * S, 20 * S], "drain": [20 * S, 30 * S]}}
    cut = phases(run_of(manifest={**manifest, "state": "running"}, host=table))
    assert cut == {"ramp": Span("ramp", S, 4 * S), "hold": Span("hold", 4 * S, 9 * S)}
    assert phases(run_of(manifest={**manifest, "state": "complete"}, host=table))["hold"].end_ns == 20 * S


def test_bins_have_wiresharks_borders(tmp_path: Path) -> None:
    lengths = [19, 20, 39, 40, 79, 80, 159, 160, 319, 320, 639, 640, 1279, 1280, 2559, 2560, 5119, 5120, 9000]
    rows = [(i, n, "tcp", 0, False, 0) for i, n in enumerate(lengths)]
    table = sizes(packets_at(tmp_path / "packets", rows), None)
    assert table["bin"].to_list() == list(BIN_NAMES)
    assert table["packets"].to_list() == [1, 2, 2, 2, 2, 2, 2, 2, 2, 2]


def test_summary_of_a_whole_run(tmp_path: Path) -> None:
    found = summarise(read_run(write_run(tmp_path / "run", Shape(qos=1, loss=0.1))))
    cpu = find(found, "cpu", Of(nodes="broker"))
    assert cpu is not None and cpu.low is not None and cpu.high is not None
    assert cpu.low < cpu.value < cpu.high
    # The synthetic run was made with this value.
    assert cpu.value == pytest.approx(100 * 0.001 * 20 * 1.25, rel=0.05)
    assert (cpu.unit, cpu.n) == ("% of a core", 60)
    of = Of(traffic_class=CLASS, guarantee="QoS 1")
    lost, held = find(found, "messages_lost", of), find(found, "guarantee_held", of)
    assert lost is not None and lost.value > 0
    assert held is not None and held.value == 0.0


def test_guarantees_of_one_name_have_one_figure_and_all_have_to_hold(tmp_path: Path) -> None:
    """Shows that guarantees of one name give one figure, which is 0 if one of them fails; two figures would
    count as repetitions of a run.
    """
    path = write_run(tmp_path / "run", Shape(qos=1, loss=0.1))
    plan = json.loads((path / "plan.json").read_text())
    plan["flows"][1]["deliveries"][0]["guarantee"] |= {"lossless": False, "single": True}
    (path / "plan.json").write_text(json.dumps(plan))
    run = read_run(path)
    assert sorted(str(v.holds) for v in delivery(run)) == ["False", "True"]
    held = [m for m in summarise(run) if m.name == "guarantee_held"]
    assert [(m.of, m.value) for m in held] == [(Of(traffic_class=CLASS, guarantee="QoS 1"), 0.0)]


def test_ramp_has_at_most_24_steps_and_one_hold(tmp_path: Path) -> None:
    curve = against_clients(read_run(write_run(tmp_path / "run", Shape())), "broker")
    assert curve is not None
    cpu = curve.filter(pl.col("quantity") == "cpu")
    ramp = cpu.filter(pl.col("part") == "ramp")
    assert 6 <= ramp.height <= 24
    assert ramp["clients"].is_sorted() and ramp["value"].to_list()[-1] > ramp["value"].to_list()[0]
    assert cpu.filter(pl.col("part") == "hold")["clients"].to_list() == [31.0]


def test_a_short_ramp_has_no_step_without_samples_of_every_repetition(tmp_path: Path) -> None:
    """Shows that a ramp of 12 s gets so few steps that every repetition has samples in each."""
    curves = []
    for seed in (1, 2, 3):
        curve = against_clients(
            read_run(write_run(tmp_path / str(seed), Shape(seed=seed, ramp_s=12, clients=100))), "broker"
        )
        assert curve is not None
        curves.append(curve.filter((pl.col("quantity") == "cpu") & (pl.col("part") == "ramp")))
    steps = [set(curve["step"].to_list()) for curve in curves]
    assert steps[0] == steps[1] == steps[2] and len(steps[0]) >= 3
    assert all(curve["n"].min() >= 2 for curve in curves)


def test_an_empty_directory_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"neither a readable plan\.json nor a manifest\.json"):
        read_run(tmp_path)


def test_numbers_have_the_digits_of_their_interval() -> None:
    assert plus_minus(12.3456, 12.2, 12.5) == "12.35 ± 0.15"
    assert plus_minus(1502.33, 1500.9, 1503.7) == "1,502.3 ± 1.4"
    assert plus_minus(50.2, 50.2, 50.2) == "50.2"
    assert plus_minus(3.14159, None, None) == "3.14"
    assert plus_minus(1.41043635, 1.41043547, 1.41043723) == "1.4104 ± <0.0001"
    assert plus_minus(93.46982, 93.46934, 93.47030) == "93.470 ± <0.001"
    assert plus_minus(0.001, -0.499, 0.501) == "0.00 ± 0.50"
    assert plus_minus(123456.7, 123444.4, 123469.0) == "123,457 ± 12"
    assert (plain(15023.4), plain(0), plain(0.0533)) == ("15,023", "0", "0.0533")


@pytest.mark.parametrize(("values", "deviation"), [([5e6], None), ([5e6, 7e6], 2**0.5), ([5e6, 5e6], 0)])
def test_the_deviation_needs_two_values(values: list[float], deviation: float | None) -> None:
    found = {m.name: m.value for m in _spread("latency", Of(), np.array(values))}
    assert found.get("latency_deviation") == (None if deviation is None else pytest.approx(deviation))
    assert found["latency_max"] == max(values) * 1e-6
