"""Tests traces of links: the states that a file of a trace gives, and each mistake with its file, line, value
and remedy.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.codec import from_json, to_json
from contract.plan import Plan
from orchestrator.kernel.needs import needs_of
from orchestrator.plan.build import make_plan
from orchestrator.plan.render import render
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import load
from orchestrator.topology.traces import MS, OPPORTUNITY_BITS, TraceError, read

LINK = """\
name: small
segments: {left: {subnet: 10.1.0.0/24}, right: {subnet: 10.1.0.0/24}}
nodes: {a: {segment: left}, b: {segment: right}}
links: {wan: {between: [left, right], both: {trace: walk.csv}}}
"""
WALK = "time_s,rate_mbps,delay_ms,loss_percent\n0,8,10,0\n1,4,20,0\n2,0,20,0\n2.5,1,40,2\n"
BIN = 100 * MS


def planned(directory: Path, link: str = LINK, walk: str = WALK) -> Plan:
    (directory / "x.yaml").write_text(link)
    (directory / "walk.csv").write_text(walk)
    return make_plan(load(directory / "x.yaml"))


def refused(directory: Path, link: str = LINK, walk: str = WALK) -> list[str]:
    with pytest.raises(TopologyError) as caught:
        planned(directory, link, walk)
    return [str(problem) for problem in caught.value.problems]


@settings(deadline=None)
@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=300), st.integers(1, 700))
def test_every_opportunity_is_in_the_rates(times: list[int], bin_ms: int) -> None:
    """Shows that rates times durations add up to 12,000 bit for each delivery opportunity, for any bins,
    apart from rounding by half a bit/s.
    """
    ordered = sorted(times)
    ordered[-1] = max(1, ordered[-1])
    found = read("\n".join(map(str, ordered)), True, bin_ms * MS)
    ends = [state.at_ns for state in found.states[1:]] + [found.length_ns]
    bits = sum((s.rate_bps or 0) * (e - s.at_ns) for s, e in zip(found.states, ends, strict=True)) / 10**9
    assert found.length_ns == ordered[-1] * MS
    assert bits == pytest.approx(len(ordered) * OPPORTUNITY_BITS, abs=0.5 * found.length_ns / 10**9 + 1e-3)
    assert all(state.at_ns % (bin_ms * MS) == 0 for state in found.states)


ROWS = st.lists(
    st.tuples(st.integers(1, 10**6), st.integers(1000, 10**10), st.integers(0, 10**6), st.integers(0, 100)),
    min_size=2, max_size=60,
)  # fmt: skip


@settings(deadline=None)
@given(ROWS, st.booleans())
def test_at_any_time_the_line_before_holds(rows: list[tuple[int, int, int, int]], repeat: bool) -> None:
    """Shows that the state at any time is that of the last line before it, with the values that were written
    (ms, bit/s, us, percent).
    """
    times = [sum(row[0] for row in rows[1 : n + 1]) for n in range(len(rows))]
    lines = [f"{t},{r},{d},{p}" for t, (_, r, d, p) in zip(times, rows, strict=True)]
    text = "time_ms,rate_bps,delay_us,loss_percent\n" + "\n".join(lines)
    found = read(text, repeat, BIN)
    assert found.length_ns == times[-1] * MS
    for time, row in zip(times[: len(rows) - repeat], rows, strict=False):
        state = [s for s in found.states if s.at_ns <= time * MS][-1]
        assert (state.rate_bps, state.delay_ns) == (row[1], row[2] * 1000)
        assert state.loss == pytest.approx(row[3] / 100)


@pytest.mark.parametrize(("text", "line", "value", "rule"), [
    ("", 1, "", "is empty"),
    ("time_s,rate_mbps\n", 1, "", "has no line below its columns"),
    ("time_s,speed\n0,1\n", 1, "speed", "is no column of a trace"),
    ("time_s,rate_mbps,rate_kbps\n0,1,1\n", 1, "rate_kbps", "is a second column of rate"),
    ("rate_mbps\n1\n", 1, "rate_mbps", "has no column of time"),
    ("time_s\n1\n", 1, "time_s", "has nothing but times"),
    ("time_s,rate_mbps\n1,5\n", 2, "1 s", "is not 0"),
    ("time_s,rate_mbps\n0,5\n3,4\n\n2,5\n", 5, "2 s", "goes back: 3 s stands before it"),
    ("time_s,rate_mbps\n0,5\n3,4\n3,5\n", 4, "3 s", "goes back"),
    ("time_ms,rate_mbps\n0,5\n0.5,4\n", 3, "0.0005 s", "less than 1 ms after"),
    ("time_s,rate_mbps\n0,5\n1,0\n", 3, "0", "zero for ever"),
    ("time_s,delay_ms\n0,5\n1,-3\n", 3, "delay_ms -3", "is negative"),
    ("time_s,delay_s\n0,300\n", 2, "300 s", "more than 274 s"),
    ("time_s,rate_mbps\n0,-1\n", 2, "rate_mbps -1", "is negative"),
    ("time_s,rate_bps\n0,9\n", 2, "9 bit/s", "less than 1 kbit/s"),
    ("time_s,loss_percent\n0,101\n", 2, "101 %", "more than 100 %"),
    ("time_s,rate_mbps\n0,fast\n", 2, "fast", "is not a number"),
    ("time_s,rate_mbps\n0,nan\n", 2, "nan", "is not a finite number"),
    ("time_s,rate_mbps\n0,1,2\n", 2, "0,1,2", "has 3 values, not 2"),
    ("5\n4\n", 2, "4", "goes back: 5 ms stands before it"),
    ("5\n5.5\n", 2, "5.5", "no time in whole milliseconds"),
    ("-5\n6\n", 1, "-5", "no time in whole milliseconds"),
    ("0\n0\n", 2, "0", "ends the trace at 0 ms"),
])  # fmt: skip
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, line: int, value: str, rule: str) -> None:
    (said,) = set(refused(tmp_path, walk=text))
    assert said.startswith(f"{tmp_path}/walk.csv:{line}: trace: ") and value in said and rule in said, said


def test_with_repeat_a_rate_of_zero_may_be_the_last_but_not_the_only(tmp_path: Path) -> None:
    again = LINK.replace("walk.csv", "{file: walk.csv, repeat: true}")
    planned(tmp_path, again, "time_s,rate_mbps\n0,5\n1,0\n2,0\n")
    (said,) = set(refused(tmp_path, again, "time_s,rate_mbps\n0,0\n1,5\n"))
    assert "walk.csv:2" in said and "zero for ever" in said
    (said,) = set(refused(tmp_path, again, "time_s,rate_mbps\n0,5\n"))
    assert "with `repeat` is the end" in said


@settings(deadline=None)
@given(st.text(alphabet="time_srabp,delyo0123456789.-\n e", max_size=80), st.booleans())
def test_any_text_is_a_trace_or_a_told_mistake(text: str, repeat: bool) -> None:
    try:
        found = read(text, repeat, BIN)
    except TraceError as error:
        assert error.line >= 1 and error.rule and error.remedy
    else:
        assert found.states[0].at_ns == 0 and found.length_ns >= found.states[-1].at_ns


@pytest.mark.parametrize(("change", "said"), [
    (("trace: walk.csv", "trace: walk.csv, rate: 1 Mbit/s"), "both.rate: conflicts with `trace`"),
    (("trace: walk.csv", "trace: walk.csv, delays: d.csv"), "both.delays: conflicts with `trace`"),
    (("trace: walk.csv", "trace: none.csv"), "none.csv: cannot be read (No such file"),
    (("trace: walk.csv", "trace: {repeat: true}"), "both.trace.file: is missing"),
    (("trace: walk.csv", "trace: {file: walk.csv, repaet: true}"), 'did you mean "repeat"'),
    (("trace: walk.csv", "trace: {file: walk.csv, bin: 20 s}"), "trace.bin: "),
    (("trace: walk.csv", "trace: walk.csv, jitter: 15 ms"), "more than the trace's shortest delay, 10 ms"),
    (("trace: walk.csv", "trace: walk.csv, queue: {cake: {}}"), "behind a rate that is 0 for a while"),
    (("both: {trace: walk.csv}", "duplex: half, forward: {trace: walk.csv}"), "shares one transmitter"),
    (("links:", 'timeline: [{at: hold, impair: wan, both: {delay: 1 ms}}]\nlinks:'), "would undo the change"),
    (("links:", 'timeline: [{at: hold, impair: wan, both: {trace: walk.csv}}]\nlinks:'), "belongs to a link"),
])  # fmt: skip
def test_what_cannot_stand_beside_a_trace(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    problems = "\n".join(refused(tmp_path, LINK.replace(*change)))
    assert said in problems and f"{tmp_path}/x.yaml:" in problems, problems


def test_the_plan_has_the_trace_once_and_says_it(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert from_json(Plan, to_json(plan)) == plan
    (name,) = plan.traces
    (link,) = plan.links
    assert link.forward.trace == link.reverse.trace == name
    first = link.forward.impairment
    assert (first.rate_bps, first.delay_ns, first.loss) == (8_000_000, 10 * MS, 0)
    text = render(plan)
    assert "trace walk.csv: 4 states over 2.5 s, then its last state" in text
    assert "0 bit/s to 8 Mbit/s, 10 ms to 40 ms, loss 0 % to loss 2 %" in text


def test_rates_alone_need_netem_unless_they_hold_the_sender_back(tmp_path: Path) -> None:
    """Shows that a trace with rates only needs netem, unless it has backpressure: then a frame waits in the
    sender's socket.
    """
    rates = "time_s,rate_mbps\n0,8\n1,4\n"
    assert "netem" in needs_of(planned(tmp_path, walk=rates)).kinds
    held = LINK.replace("trace: walk.csv", "trace: walk.csv, backpressure: true")
    assert "netem" not in needs_of(planned(tmp_path, held, rates)).kinds


def test_a_traces_values_win_over_a_profiles(tmp_path: Path) -> None:
    walk = "time_s,delay_ms\n0,25\n1,30\n"
    text = LINK.replace("{trace: walk.csv}", "{profile: constrained, trace: walk.csv}")
    plan = planned(tmp_path, text, walk)
    (link,) = plan.links
    i = link.forward.impairment
    assert (i.rate_bps, i.delay_ns, i.jitter_ns, i.loss) == (250_000, 25 * MS, 5 * MS, 0.3)


def test_a_link_is_proven_with_the_first_state_that_sends(tmp_path: Path) -> None:
    plan = planned(tmp_path, walk="time_s,rate_mbps\n0,0\n1,4\n")
    assert plan.links[0].forward.impairment.rate_bps == 4_000_000
