"""Tests the conservation checks: each check holds while the counts agree, and fails after one count is
changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from conserved import FRAME, RATE, SECONDS, SIZE, Counts, absent, agreeing, checked, written
from frames import write
from rundirs import T0, S

from capture.conservation import registry
from capture.conservation.evidence import Evidence, Recorded
from capture.reduce import reduce_run
from contract import manifest, rundir
from reports.metrics.messages import counts
from reports.report import report

Change = Callable[[Counts], None]


def failing(run: Path) -> set[str]:
    return {name for name, check in checked(run).items() if check["verdict"] == "fails"}


def test_nothing_is_found_where_counts_agree(tmp_path: Path) -> None:
    found = checked(written(tmp_path, agreeing()))
    verdicts = {name: check["verdict"] for name, check in found.items()}
    # These checks need counters of stacks, peaks of memory or phases, which the run lacks;
    # tests/chaos/test_liars.py tests them.
    untold = {"memory-sampled", "node-memory", "link-drops", "link-stack", "phases-planned"}
    assert verdicts == {name: "cannot tell" if name in untold else "holds" for name in verdicts}
    # The run has no node with an uncounted interface, no segment of more than two ports and no capture
    # filter.
    without = {"node-some-links", "link-most-frames", "capture-filtered", "capture-matches"}
    # The plan has no impairment, no stream and no UDP role, and no stack retransmitted a segment.
    without |= {"link-full", "proof-planned", "proof-words", "link-backlog", "link-loss", "message-delay"}
    without |= {"datagrams-sent", "datagrams-received", "stack-repeats"}
    without |= {"transfer-ends", "transfer-times", "transfer-nodes"}
    reasons = absent(tmp_path / "run")
    assert set(reasons) == without and all(reasons.values())
    assert set(verdicts) | without == {rule.name for rule in registry.TABLES}


def no_bytes_of_a_node(counts: Counts) -> None:
    for (name, _), row in counts.nodes.items():
        if name == "a":
            row[3:5] = [0, 0]


def half_the_bytes_of_a_node(counts: Counts) -> None:
    for (name, _), row in counts.nodes.items():
        if name == "a":
            row[3:5] = [row[3] // 2, row[4] // 2]


def capture_that_lost(counts: Counts) -> None:
    del counts.captured[7:9]


def packet_too_many(counts: Counts) -> None:
    counts.captured.append(20)


def lost_without_a_drop(counts: Counts) -> None:
    del counts.arrived[11]
    counts.totals["received"] -= 1


def record_lost(counts: Counts) -> None:
    del counts.arrived[11]


def frames_gone_in_a_segment(counts: Counts) -> None:
    for (name, second), row in counts.nodes.items():
        if name == "b" and second == SECONDS:
            row[1:3] = [row[1] - 3 * FRAME, row[2] - 3]


def clock_of_captures_late(counts: Counts) -> None:
    counts.captured_late = dict.fromkeys(counts.captured, 0.02)


def clock_of_captures_early(counts: Counts) -> None:
    counts.captured_late = dict.fromkeys(counts.captured, -0.02)


def captured_in_the_next_sample(counts: Counts) -> None:
    """Shows that a packet captured in the next sample is no difference: the count of the whole run is
    right.
    """
    counts.captured_late = {29: 0.06}


def more_cpu_than_there_is(counts: Counts) -> None:
    counts.nodes["a", SECONDS][0] = 2 * SECONDS * 10**9 + 10**8


def more_cpu_than_a_second_has(counts: Counts) -> None:
    for (name, second), row in counts.nodes.items():
        if name == "a" and second > 2:
            row[0] += 2 * 10**9 + 10**8


def more_cpu_than_the_kernel_saw(counts: Counts) -> None:
    for (name, second), row in counts.nodes.items():
        if name == "a" and second > 2:
            row[0] += 9 * 10**8


def link_took_more_than_came(counts: Counts) -> None:
    # the link claims to have dropped three frames, but nobody sent any
    counts.links["reverse", SECONDS][2] = 3


def dropped_by_a_link_uncounted(counts: Counts) -> None:
    """Makes messages disappear that the first link counted neither as sent nor as dropped."""
    for (way, second), row in counts.links.items():
        if way == "forward" and second > 2:
            row[:2] = [row[0] - 3 * FRAME, row[1] - 3]


def forwarded_by_no_link(counts: Counts) -> None:
    counts.forwarded = 100


def more_received_than_written(counts: Counts) -> None:
    counts.received = 90


def cpu_of_the_wrong_group(counts: Counts) -> None:
    counts.processes_ns["a"] = 130_000_000


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (no_bytes_of_a_node, {"node-links", "node-payload"}),
        (half_the_bytes_of_a_node, {"node-links", "node-payload"}),
        (capture_that_lost, {"capture-frames"}),
        (packet_too_many, {"capture-frames"}),
        (lost_without_a_drop, {"message-losses"}),
        (record_lost, {"message-totals", "message-losses"}),
        (clock_of_captures_late, {"capture-times"}),
        (clock_of_captures_early, {"capture-times"}),
        (captured_in_the_next_sample, {"capture-frames", "capture-times"}),
        (frames_gone_in_a_segment, {"segment-frames", "capture-frames"}),
        (more_cpu_than_there_is, {"node-cpu"}),
        (more_cpu_than_a_second_has, {"node-cpu"}),
        (more_cpu_than_the_kernel_saw, {"node-cpu"}),
        (link_took_more_than_came, {"link-frames"}),
        (dropped_by_a_link_uncounted, {"link-messages", "node-links"}),
        (forwarded_by_no_link, {"link-forwarded"}),
        (more_received_than_written, {"capture-received"}),
        (cpu_of_the_wrong_group, {"node-cpu-processes"}),
    ],
)
def test_what_is_changed_is_found(tmp_path: Path, change: Change, names: set[str]) -> None:
    counts = agreeing()
    change(counts)
    run = written(tmp_path, counts)
    assert failing(run) == names
    said = manifest.read(run)
    assert said["suspect"] and {w["code"] for w in said["warnings"]} >= {f"trust-{name}" for name in names}
    failed = [check for check in said["checks"] if check["verdict"] == "fails"]
    assert all(check["text"] in {w["text"] for w in said["warnings"]} for check in failed)


def test_a_queue_holds_what_it_has_not_let_out(tmp_path: Path) -> None:
    counts = agreeing()
    dropped_by_a_link_uncounted(counts)
    for second in range(3, SECONDS + 1):
        counts.links["forward", second][4:] = [3 * FRAME, 3]
    assert "link-messages" not in failing(written(tmp_path, counts))


def test_what_a_filter_lets_through_is_counted_twice(tmp_path: Path) -> None:
    udp = written(tmp_path / "udp", agreeing(), wanted="udp")
    found = checked(udp)
    names = ("capture-filtered", "capture-matches", "capture-received", "capture-rows", "capture-bytes")
    assert {name: found[name]["verdict"] for name in names} == dict.fromkeys(names, "holds")
    assert absent(udp)["capture-frames"] == "every capture has a filter"
    assert failing(written(tmp_path / "tcp", agreeing(), wanted="tcp")) == {"capture-matches"}
    more = agreeing()
    more.captured += [20] * 3
    more.received += 3
    assert failing(written(tmp_path / "more", more, wanted="udp")) == {"capture-filtered"}


def test_without_tcpdump_a_filter_cannot_be_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    found = checked(written(tmp_path, agreeing(), wanted="udp"))["capture-matches"]
    assert found["verdict"] == "cannot tell" and "tcpdump did not count" in found["text"]


def test_a_drop_explains_a_loss(tmp_path: Path) -> None:
    counts = agreeing()
    lost_without_a_drop(counts)
    counts.links["forward", SECONDS][2] = 1
    assert "message-losses" not in failing(written(tmp_path, counts))


def negative(counts: Counts) -> None:
    counts.nodes["b", 2][5] = -1


def faster_than_light(counts: Counts) -> None:
    counts.nodes["b", 2][1] = 9 * 10**18


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (negative, "nodes.parquet: memory_bytes is below zero in 1 samples, first of b"),
        (faster_than_light, "nodes.parquet: rx_bytes jumps 2 times by more than any machine moves, of b"),
    ],
)
def test_counters_that_cannot_be_make_the_run_suspect(tmp_path: Path, change: Change, said: str) -> None:
    counts = agreeing()
    change(counts)
    run = written(tmp_path, counts)
    reduce_run(run)
    found = manifest.read(run)
    assert said in [w["text"] for w in found["warnings"] if w["code"] == "trust-samples" and w["suspect"]]
    assert found["suspect"]


def test_samples_of_another_day_make_the_run_suspect(tmp_path: Path) -> None:
    run = written(tmp_path, agreeing())
    links = run / "raw" / "links.csv"
    links.write_text(links.read_text() + f"{T0 + 172_800 * S},access,forward,9000,70,0,0,0,0\n")
    reduce_run(run)
    (text,) = [w["text"] for w in manifest.read(run)["warnings"] if w["code"] == "trust-samples"]
    assert "1 samples are a day or more before or after the scenario" in text


def test_in_real_time_one_sample_may_differ_but_not_all(tmp_path: Path) -> None:
    late = agreeing()
    for second in range(1, SECONDS + 1):
        late.links["forward", second][:2] = [FRAME * (RATE * second - 4), RATE * second - 4]
    assert failing(written(tmp_path / "late", late, "real")) == set()
    assert failing(written(tmp_path / "exact", late)) == {"node-links", "link-messages"}
    half = agreeing()
    half_the_bytes_of_a_node(half)
    assert "node-links" in failing(written(tmp_path / "half", half, "real"))


@pytest.mark.parametrize(
    ("time", "quiet_s", "busy_s", "suspect"),
    [("virtual", 1, 0, False), ("virtual", 0, 0, True), ("virtual", 1, 9, True), ("real", 1, 0, True)],
)
def test_in_virtual_time_a_wake_is_a_tick_of_idle_time(
    tmp_path: Path, time: str, quiet_s: int, busy_s: int, suspect: bool
) -> None:
    """Shows that in virtual time the kernel counts one tick of idle time for each wake-up, so that two idle
    cores that wake often have too much idle time.
    """
    run = written(tmp_path, agreeing(), time)
    idle_s = [2 * at + 4 * max(0, at - quiet_s) for at in range(SECONDS + 1)]
    rows = [
        f"{T0 + at * S},{busy_s * at * S},0,0,{idle * S},0,0,0,0,0.1,1000000,2\n"
        for at, idle in enumerate(idle_s)
    ]
    (run / "raw" / "host.csv").write_text("".join(rows))
    assert ("machine-time" in failing(run)) == suspect


@pytest.mark.parametrize(("used", "suspect"), [(True, False), (False, True)])
def test_a_core_is_not_idle_while_a_node_uses_it(tmp_path: Path, used: bool, suspect: bool) -> None:
    """Shows that idle time counted at wakes may reach over what nodes left of the time, busy time not."""
    counts = agreeing()
    for (name, second), row in counts.nodes.items():
        row[0] += 85 * 10**7 * second if used and name == "a" else 0
    run = written(tmp_path, counts)
    rows = [
        f"{T0 + at * S},{85 * 10**7 * at},0,0,{at * 23 * 10**8},0,0,0,0,0.1,1000000,2\n"
        for at in range(SECONDS + 1)
    ]
    (run / "raw" / "host.csv").write_text("".join(rows))
    assert ("machine-time" in failing(run)) == suspect


def test_counters_that_begin_anew_are_left_out(tmp_path: Path) -> None:
    """Shows that counters are not compared after they were reset, as when a qdisc is replaced."""
    counts = agreeing()
    for second in (4, 5):
        counts.links["forward", second][:2] = [(second - 3) * RATE * FRAME, (second - 3) * RATE]
    assert failing(written(tmp_path, counts)) == set()


def test_while_a_link_is_down_frames_to_it_are_not_looked_for(tmp_path: Path) -> None:
    """Shows that frames to a link that is down are not counted as missing: a bridge discards them
    uncounted.
    """
    counts = agreeing()
    for (name, second), row in counts.nodes.items():
        if name == "b" and second > 2:
            row[1:3] = [row[1] - 2 * FRAME, row[2] - 2]
    del counts.captured[25:27]
    run = written(tmp_path, counts)
    assert failing(run) == {"segment-frames"}
    down = {"t_ns": T0 + S // 2, "action": "link-down", "targets": ["access"], "phase": "hold", "ok": True}
    plan = json.loads((run / "plan.json").read_text()) | {
        "events": [{"phase": "hold", "at_ns": 0, "action": "link-down", "targets": ["access"]}]
    }
    (run / "plan.json").write_text(json.dumps(plan))
    (run / "raw" / "events.jsonl").write_text(json.dumps(down) + "\n")
    assert failing(run) == set()


def test_a_bridge_may_discard_frames_that_a_link_has_damaged(tmp_path: Path) -> None:
    counts = agreeing()
    for (name, second), row in counts.nodes.items():
        if name == "b" and second > 2:
            row[1:3] = [row[1] - 2 * FRAME, row[2] - 2]
    del counts.captured[25:27]
    assert failing(written(tmp_path / "whole", counts)) == {"segment-frames"}
    assert failing(with_link(written(tmp_path / "flips", counts), corrupt=0.01)) == set()


def test_a_cut_table_and_a_cut_pcap_are_found(tmp_path: Path) -> None:
    counts = agreeing()
    run = written(tmp_path, counts)
    said = json.loads((run / "manifest.json").read_text())
    said["captures"]["b"]["packets"] += 1
    (run / "manifest.json").write_text(json.dumps(said))
    assert failing(run) == {"capture-rows"}
    pcap = run / "pcap" / "b.pcap"
    size = pcap.stat().st_size
    evidence = Evidence(run, rundir.read_plan(run), manifest.load(run))
    short = Evidence(run, evidence.plan, evidence.manifest, pcap_bytes={"b": size - SIZE})
    assert {c.name for c in registry.of_tables(short) if c.verdict == "fails"} == {
        "capture-rows",
        "capture-bytes",
    }


def with_link(run: Path, **impairment: float) -> Path:
    """Returns the run, in whose plan the link from a has the impairment."""
    plan = json.loads((run / "plan.json").read_text())
    plan["links"][0]["forward"]["impairment"] = impairment
    (run / "plan.json").write_text(json.dumps(plan))
    return run


def test_a_capture_sees_a_message_when_the_delays_before_it_are_over(tmp_path: Path) -> None:
    late = agreeing()
    late.captured_late = dict.fromkeys(late.captured, 0.0005)
    assert failing(with_link(written(tmp_path / "good", late), delay_ns=500_000)) == set()
    found = checked(with_link(written(tmp_path / "early", late), delay_ns=700_000))["capture-times"]
    assert found["verdict"] == "fails"
    assert "b, a.meter until its capture: 500 us against 700 us" in found["text"]
    # The check allows one message in a hundred to be captured after its receipt, so of 50 messages none.
    late.captured_late[7] = 0.02
    found = checked(with_link(written(tmp_path / "one", late), delay_ns=500_000))["capture-times"]
    assert "b, a.meter after its capture: -19 ms against 0 ns" in found["text"]


def test_in_real_time_the_clock_of_a_capture_may_be_off_by_10_ms(tmp_path: Path) -> None:
    for late, found in ((0.009, set()), (0.02, {"capture-times"}), (-0.02, {"capture-times"})):
        counts = agreeing()
        counts.captured_late = dict.fromkeys(counts.captured, late)
        assert failing(written(tmp_path / str(late), counts, "real")) == found


def test_messages_that_cannot_be_read_in_a_capture_say_so(tmp_path: Path) -> None:
    run = written(tmp_path / "twice", agreeing())
    found = checked(with_link(run, duplicate=0.1))["capture-times"]
    assert (found["verdict"], "a link duplicates frames" in found["text"]) == ("cannot tell", True)
    write(run / "pcap" / "b.pcap", [])
    said = checked(with_link(run))["capture-times"]
    assert said["text"] == "could not be made: a capture has no message that can be read"


def test_records_that_no_table_has_are_found(tmp_path: Path) -> None:
    run = written(tmp_path, agreeing())
    reduce_run(run)
    table = pl.read_parquet(run / "messages.parquet")
    table.head(-2).write_parquet(run / "messages.parquet")
    known = Recorded(50, 50, 0)
    evidence = Evidence(run, rundir.read_plan(run), manifest.load(run), known)
    assert {c.name for c in registry.of_tables(evidence) if c.verdict == "fails"} == {"message-rows"}


def test_what_cannot_be_compared_says_so(tmp_path: Path) -> None:
    run = written(tmp_path, agreeing(), driver="fake")
    found = checked(run)
    assert found["node-links"]["verdict"] == "cannot tell"
    assert found["node-links"]["text"] == "could not be made: the fake driver's figures are invented"
    plan = json.loads((run / "plan.json").read_text())
    plan["captures"] = []
    (run / "plan.json").write_text(json.dumps(plan))
    assert "capture-rows" not in checked(run)
    assert absent(run)["capture-rows"] == "the run has no capture point"


def test_figures_of_the_summary_are_held_against_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = written(tmp_path, agreeing())
    reduce_run(run)
    report(run)
    names = {rule.name for rule in registry.SUMMARY} - {"summary-goodput"}  # the run has no bulk transfer
    good = {c["name"]: c["verdict"] for c in manifest.read(run)["checks"]}
    assert names <= set(good) and good["summary-counts"] == "holds" and not manifest.read(run)["suspect"]
    right = counts
    monkeypatch.setattr(
        "reports.metrics.messages.counts", lambda rows: right(rows) | {"sent": 49, "unsent": 1}
    )
    page = report(run).read_text()
    bad = {c["name"]: c for c in manifest.read(run)["checks"]}
    assert bad["summary-counts"]["verdict"] == "fails" and manifest.read(run)["suspect"]
    assert "messages_sent: 49 messages against 50 messages" in page and len(bad) == len(good)
    monkeypatch.undo()
    report(run)
    assert not manifest.read(run)["suspect"]
