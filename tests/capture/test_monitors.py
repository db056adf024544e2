"""Tests the monitors on run directories written by hand; tests/virtual/test_monitors_provoked.py provokes
them in labs.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from rundirs import T0, S, flow, guarantee, node, plan, run_dir

from capture.conservation.evidence import Evidence
from capture.monitors import queues
from capture.monitors.monitor import Monitor, Reading
from capture.reduce import MONITORS, readings
from contract import manifest, rundir

PAGE = Path(__file__).parents[2] / "docs/monitors.md"
MS = 1_000_000
PLAIN = plan([node("a"), node("b")], [flow("a", ("b", guarantee()))], {"b": ["b"]})


def read(run: Path, **tables: pl.DataFrame) -> dict[str, Reading]:
    """Returns the readings of the run by name, with these tables."""
    for name, table in tables.items():
        table.write_parquet(run / f"{name}.parquet")
    found = readings(Evidence(run, rundir.read_plan(run), manifest.load(run)))
    return {one.name: one for one in found}


def stacks(*rows: tuple[str, str, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["node", "counter", "value"], orient="row")


def test_a_value_at_the_threshold_has_reached_it() -> None:
    monitor = Monitor("some", 5, "packets")
    assert [monitor.read(n, "high", "low").state for n in (4.9, 5, 6)] == ["below", "reached", "reached"]
    assert [monitor.read(n, "high", "low").text for n in (4.9, 5)] == ["low", "high"]


def test_without_tables_no_monitor_can_tell(tmp_path: Path) -> None:
    found = read(run_dir(tmp_path / "run", PLAIN))
    assert {one.state for one in found.values()} == {"cannot tell"} and all(o.text for o in found.values())
    assert list(found) == [monitor.name for monitor in MONITORS if not monitor.role]


def test_the_page_of_monitors_has_each_with_its_threshold() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    named = {row.split("`")[1]: row for row in rows}
    assert list(named) == [monitor.name for monitor in MONITORS]
    for monitor in MONITORS:
        assert f"{monitor.threshold:g} {monitor.unit}" in named[monitor.name]


def test_invented_figures_are_not_explained(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", PLAIN)
    manifest.write(run, {"state": "complete", "driver": "fake", "warnings": []})
    found = read(run, stacks=stacks(("a", "UdpRcvbufErrors", 9)))
    assert {one.state for one in found.values()} == {"cannot tell"}


def test_frames_that_a_packet_socket_dropped_are_read_from_its_session(tmp_path: Path) -> None:
    detail = "12 frames arrived and found the socket's buffer full"
    sessions = pl.DataFrame({"endpoint": ["b"], "what": ["failed"], "t_ns": [T0], "detail": [detail]})
    found = read(run_dir(tmp_path / "run", PLAIN), stacks=stacks(("a", "TcpOutSegs", 1)), sessions=sessions)
    assert found["socket-drops"].value == 12
    assert found["socket-drops"].text.startswith("b dropped 12 frames")


def linked(**impairment: Any) -> dict[str, Any]:
    """Returns a plan whose nodes a and b are joined by a link with this impairment, and c and d by one
    without.
    """
    names = [("a", "b"), ("c", "d")]
    way: dict[str, Any] = {"impairment": {}, "shared": None}
    ends = [node(name) | {"kind": "light", "interfaces": []} for pair in names for name in pair]
    links = [
        {"name": f"{a}{b}", "kind": "nodes", "a": a, "b": b, "forward": way, "reverse": way} for a, b in names
    ]
    links[0]["forward"] = {"impairment": impairment, "shared": None}
    return plan(ends, [flow("a", ("b", guarantee()))], {"b": ["b"]}) | {"links": links, "events": []}


def again(name: str, count: int, of: int = 1000, handshakes: int = 0) -> list[tuple[str, str, int]]:
    counters = {"TcpRetransSegs": count, "TcpOutSegs": of, "TcpExtTCPSynRetrans": handshakes}
    return [(name, counter, value) for counter, value in counters.items()]


@pytest.mark.parametrize(
    ("wanted", "rows", "state", "text"),
    [
        ({}, again("a", 3), "reached", "a sent 3 of 1,000 segments again although"),
        ({}, again("a", 3, of=10_000), "below", "hardly"),
        ({}, again("a", 2), "below", "hardly"),
        ({}, again("a", 5, handshakes=3), "below", "hardly"),
        ({"loss": 0.01}, again("a", 30), "cannot tell", "requests loss or flipped bits on link ab"),
        ({"corrupt": 0.01}, again("a", 30), "cannot tell", "flipped bits on link ab"),
        ({"loss": 0.01}, [*again("a", 30), *again("c", 4)], "reached", "c sent 4 of 1,000"),
    ],
)
def test_segments_are_sent_again_without_reason_where_no_loss_is_requested(
    tmp_path: Path, wanted: dict[str, Any], rows: list[tuple[str, str, int]], state: str, text: str
) -> None:
    one = read(run_dir(tmp_path / "run", linked(**wanted)), stacks=stacks(*rows))["retransmissions"]
    assert (one.state, text in one.text) == (state, True), one


def dropping(count: int) -> pl.DataFrame:
    table = pl.DataFrame({"t_ns": [T0, T0 + S], "link": "ab", "direction": "forward", "bps": [None, 1.0]})
    return table.with_columns(pl.lit(None, pl.String).alias("class"), backlog_packets=0).with_columns(
        dropped=pl.Series([0, count])
    )


@pytest.mark.parametrize(
    ("dropped", "unasked", "state", "text"),
    [
        (
            7,
            False,
            "cannot tell",
            "the queue of link ab forward short or changes it, and it dropped 7 packets",
        ),
        (7, True, "reached", "requests no loss: the queue of link ab forward dropped 7 packets"),
        (0, False, "reached", "no link dropped a packet"),
    ],
)
def test_drops_of_a_queue_that_the_file_makes_short_are_no_riddle(
    tmp_path: Path, dropped: int, unasked: bool, state: str, text: str
) -> None:
    run = run_dir(tmp_path / "run", linked(rate_bps=1_000_000, limit_packets=10))
    found = {"code": "queue-drops", "text": "link ab forward: its queue dropped 7 packets beyond"}
    manifest.write(run, {"state": "complete", "driver": "uml", "warnings": [found] * unasked})
    one = read(run, stacks=stacks(*again("a", 30)), links=dropping(dropped))["retransmissions"]
    assert (one.state, text in one.text) == (state, True), one


@pytest.mark.parametrize(
    ("seconds", "state"), [(1, "below"), (2, "below"), (3, "reached"), (20, "reached")]
)  # of 20
def test_a_link_is_at_its_rate_in_three_samples_and_five_percent(
    tmp_path: Path, seconds: int, state: str
) -> None:
    bps = [None, *[960_000.0] * seconds, *[900_000.0] * (20 - seconds)]
    links = pl.DataFrame(
        {"t_ns": [T0 + at * S for at in range(21)], "link": "ab", "direction": "forward", "bps": bps}
    ).with_columns(pl.lit(None, pl.String).alias("class"), backlog_packets=7, dropped=0)
    one = read(run_dir(tmp_path / "run", linked(rate_bps=1_000_000)), links=links)["link-rate"]
    assert one.state == state, one
    assert state == "below" or f"in {seconds} of 20 samples, with up to 7 packets" in one.text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("2026-01-01T00:00:12: Outgoing messages are being dropped for client ear.", "for ear, whose queue"),
        ("... Client connection from 10.0.0.2 denied: max_connections exceeded.", "refused a client"),
        ("[warning] <0.1.0> memory resource limit alarm set on node rabbit@b.", "alarm was raised: memory"),
        ("[warning] <0.1.0> disk resource limit alarm set on node rabbit@b.", "alarm was raised: disk"),
        ("2026-01-01T00:00:12: mosquitto version 2.0.11 running", ""),
    ],
)
def test_a_broker_says_in_its_log_that_it_reached_a_limit(tmp_path: Path, line: str, text: str) -> None:
    run = run_dir(tmp_path / "run", plan([node("b", role="broker")]))
    assert read(run)["broker-limits"].text == "the log of b.meter is missing"
    (run / "raw" / "logs").mkdir()
    (run / "raw" / "logs" / "b.meter.log").write_text(f"begins\n{line}\n")
    one = read(run)["broker-limits"]
    assert one.state == ("reached" if text else "below") and text in one.text


def arrivals(every_ms: int, hold_ms: int, count: int = 200, least_ms: float = 0.1) -> pl.DataFrame:
    """Returns messages that are due at equal intervals and arrive in bursts, each burst `hold_ms` after the
    one before; hold_ms 0: each message arrives at once.
    """
    rows = []
    for number in range(count):
        due = number * every_ms
        came = -(-due // hold_ms) * hold_ms if hold_ms else due
        rows.append((T0 + due * MS, T0 + round((came + least_ms) * MS)))
    table = pl.DataFrame(rows, schema=["scheduled_ns", "received_ns"], orient="row")
    return table.with_columns(
        name=pl.lit("a.meter"), sender=pl.lit("a"), receiver=pl.lit("b"), pattern=pl.lit("publish"),
        settled_ns=pl.lit(None, pl.Int64), latency_ns=pl.col("received_ns") - pl.col("scheduled_ns"),
    ).with_columns(pl.lit("meter").alias("class"))  # fmt: skip


@pytest.mark.parametrize(
    ("every_ms", "hold_ms", "least_ms", "delayed", "state"),
    [
        (10, 40, 0.1, 50, "reached"),
        (10, 50, 0.1, 50, "reached"),  # on a kernel whose tick is 10 ms
        (10, 44, 2.0, 50, "reached"),  # with a round-trip time of 4 ms
        (10, 40, 0.1, 0, "below"),  # no stack delayed an acknowledgement: something else made the bursts
        (10, 0, 0.1, 50, "below"),
        (10, 20, 0.1, 50, "below"),
        (10, 100, 0.1, 50, "below"),
        (40, 0, 0.1, 50, "below"),  # messages at intervals of 40 ms, which wait for nothing
        (10, 40, 30.0, 50, "cannot tell"),  # held for a round trip of 60 ms, as Nagle's algorithm does alone
    ],
)
def test_bursts_forty_milliseconds_apart_are_delayed_acknowledgements(
    tmp_path: Path, every_ms: int, hold_ms: int, least_ms: float, delayed: int, state: str
) -> None:
    run = run_dir(tmp_path / "run", PLAIN)
    counted = stacks(("b", "TcpExtDelayedACKs", delayed))
    one = read(run, messages=arrivals(every_ms, hold_ms, least_ms=least_ms), stacks=counted)["delayed-acks"]
    assert one.state == state, one


def delayed(run: Path, due_ms: list[float], came_ms: list[float]) -> Reading:
    """Returns the monitor's reading of messages that are due and arrive at these times, besides one that
    arrives at once.
    """
    table = arrivals(1, 0, count=len(due_ms) + 1).with_columns(
        scheduled_ns=pl.Series([T0, *(T0 + round(ms * MS) for ms in due_ms)]),
        received_ns=pl.Series([T0 + MS, *(T0 + round(ms * MS) for ms in came_ms)]),
    ).with_columns(latency_ns=pl.col("received_ns") - pl.col("scheduled_ns"))  # fmt: skip
    return read(run, messages=table, stacks=stacks(("b", "TcpExtDelayedACKs", 50)))["delayed-acks"]


@pytest.mark.parametrize("size", [1, 5])
def test_messages_sent_every_forty_milliseconds_over_requested_jitter_wait_for_no_acknowledgement(
    tmp_path: Path, size: int
) -> None:
    due = [40.0 * (1 + at // size) for at in range(400)]
    came = [ms + (7, 12, 9, 14)[int(ms / 40) % 4] for ms in due]
    one = delayed(run_dir(tmp_path / "run", PLAIN), due, came)
    assert (one.state, one.value) == ("below", 0.0), one


def test_the_messages_behind_a_lost_segment_wait_for_no_acknowledgement(tmp_path: Path) -> None:
    due = [10.0 * at for at in range(1, 401)]
    came = [(ms // 100 + 1) * 100 - 50 if ms % 100 < 50 and ms % 100 > 0 else ms + 1 for ms in due]
    one = delayed(run_dir(tmp_path / "run", PLAIN), due, came)
    assert (one.state, one.value) == ("below", 0.0), one


def test_datagrams_in_bursts_have_no_acknowledgements(tmp_path: Path) -> None:
    ends = [node("a", kind="udp"), node("b", kind="udp")]
    run = run_dir(tmp_path / "run", plan(ends, PLAIN["flows"], {"b": ["b"]}))
    counted = stacks(("b", "TcpExtDelayedACKs", 50))
    one = read(run, messages=arrivals(10, 40), stacks=counted)["delayed-acks"]
    assert (one.state, one.text) == ("cannot tell", "no messages over TCP arrived")


@pytest.mark.parametrize(
    ("times", "state"), [((1, 2, 3), "below"), ((1,), "cannot tell"), ((), "cannot tell")]
)
def test_a_share_needs_samples(monkeypatch: pytest.MonkeyPatch, times: tuple[int, ...], state: str) -> None:
    """Shows that a single sample gives no share: the interval before the first sample is unknown."""
    monkeypatch.setattr(queues.requested, "rates", lambda *_: {("wan", "forward"): [(0, 10**6)]})
    rows = [
        {"t_ns": t * S, "link": "wan", "direction": "forward", "bps": 1000.0, "backlog_packets": 0}
        for t in times
    ]
    kinds = {"t_ns": pl.Int64, "link": pl.String, "direction": pl.String, "bps": pl.Float64}
    links = pl.DataFrame(rows, schema={**kinds, "backlog_packets": pl.Int64})
    evidence: Any = SimpleNamespace(links=links, plan=None, events=None, impairments=None, scenario=None)
    assert queues.at_rate(evidence).state == state
