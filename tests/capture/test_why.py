"""Tests that the parts of a message's time are as expected, and that their sum is the whole time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from frames import SYN
from hypothesis import given
from hypothesis import strategies as st
from rundirs import T0
from why_runs import US, Seen, at, format_of, lookup, message, planned, why_run

from capture.errors import CaptureError
from capture.why.answer import NO_CAPTURE, Answer, Run
from capture.why.parts import Line, Part
from capture.why.select import select
from capture.why.streams import Stream
from capture.why.summary import sums

FRAME = 142  # us to send the frame at the link's rate: 14 + 20 + 8 + 100 bytes


def answer(run: Path) -> Answer:
    (found,) = Run(run).answers(Run(run).messages, behind=True)
    return found


def parts(found: Answer) -> list[tuple[str, str, float]]:
    """Returns the parts in us, and fails if they do not add up."""
    assert sum(part.length_ns for part in found.parts) == found.latency_ns
    return [(part.what, part.where, part.length_ns / US) for part in found.parts]


def test_a_datagram_waits_behind_another_node_s_frames(tmp_path: Path) -> None:
    other = at(300 + 10_000, "ac", b"x" * 900)
    seen: Seen = {
        "a": [at(50, "ac", message())],
        "c": [other, at(50 + 700 + FRAME + 10_000, "ac", message())],
    }
    found = answer(why_run(tmp_path, seen, [{"sent": 60, "received": 10_900}]))
    assert parts(found) == [
        ("program late", "node a", 50),
        ("queue", "link way forward", 700),
        ("serialisation", "link way forward", FRAME),
        ("propagation", "link way forward", 10_000),
        ("receiver", "node c", 8),
    ]
    assert found.parts[1].behind == {"a": 942} and not found.notes and found.lost is None


def test_an_address_lookup_is_told_from_the_socket(tmp_path: Path) -> None:
    seen: Seen = {
        "a": [lookup(20, "ac", False), lookup(20_070, "ca", True), at(20_080, "ac", message())],
        "c": [at(20_080 + FRAME + 10_000, "ac", message())],
    }
    found = answer(why_run(tmp_path, seen, [{"sent": 30, "received": 30_222}]))
    assert parts(found)[:3] == [
        ("program late", "node a", 30),
        ("address lookup", "node a, asked for 10.0.0.3", 20_040),
        ("socket", "node a", 10),
    ]


def test_a_broker_a_retransmission_and_a_gap_before_the_message(tmp_path: Path) -> None:
    """Shows the parts of a message whose first segment was lost and sent again, and which waited behind
    another segment after the broker.
    """
    first, size = message(), 154
    again = 300_000 + size + 10_000
    seen: Seen = {
        "a": [at(100, "ab", first, seq=1), at(300_000, "ab", first, seq=1)],
        "b": [at(again, "ab", first, seq=1), at(again + 90, "bc", first, seq=500)],
        "c": [
            at(1, "bc", b"", seq=399, flags=SYN),
            at(again + 90, "bc", first, seq=500),
            at(again + 5_090, "bc", b"e" * 100, seq=400),
        ],
    }
    run = why_run(tmp_path, seen, [{"sent": 40, "received": again + 5_100, "pattern": "publish"}])
    assert parts(answer(run)) == [
        ("program late", "node a", 40),
        ("socket", "node a", 60),
        ("retransmission", "node a, sent 2 times", 299_900),
        ("serialisation", "link way forward", size),
        ("propagation", "link way forward", 10_000),
        ("program", "node b", 90),
        ("earlier segment", "c, connection b to c", 5_000),
        ("receiver", "node c", 10),
    ]


def test_a_request_counts_until_its_reply(tmp_path: Path) -> None:
    there, back = message(purpose=0), message(purpose=1)
    arrived, left = 5 + FRAME + 10_000, 5 + FRAME + 10_500
    seen: Seen = {
        "a": [at(5, "ac", there), at(left + FRAME + 10_000, "ca", back)],
        "c": [at(arrived, "ac", there), at(left, "ca", back)],
    }
    row = {"sent": 5, "received": arrived + 30, "replied": left + FRAME + 10_007, "pattern": "request"}
    found = parts(answer(why_run(tmp_path, seen, [row], planned("request"))))
    assert [one for one in found if one[0] in ("receiver", "program")] == [
        ("receiver", "node c", 30),
        ("program", "node c", 470),
        ("receiver", "node a", 7),
    ]


@pytest.mark.parametrize(("ahead", "what"), [(10_300 - FRAME, "queue or jitter"), (9_000, "jitter")])
def test_jitter_is_named_alone_only_if_no_frame_went_just_before(
    ahead: float, what: str, tmp_path: Path
) -> None:
    seen: Seen = {
        "a": [at(0, "ac", message())],
        "c": [at(ahead, "ac", b"x" * 50), at(10_300, "ac", message())],
    }
    run = why_run(tmp_path, seen, [{"sent": 0, "received": 10_300}], planned(jitter_ns=US * 1000))
    assert parts(answer(run))[0] == (what, "link way forward", 300 - FRAME)


def test_what_no_capture_shows_is_unexplained(tmp_path: Path) -> None:
    sent = {"sent": 10, "received": 11_000}
    found = answer(why_run(tmp_path / "none", {}, [sent]))
    assert parts(found)[1:] == [("unexplained", "between the sender's program and the receiver's", 10_990)]
    assert found.notes == (NO_CAPTURE,)
    found = answer(why_run(tmp_path / "end", {"c": [at(10_990, "ac", message())]}, [sent]))
    assert parts(found) == [
        ("program late", "node a", 10),
        ("serialisation", "link way forward", FRAME),
        ("propagation", "link way forward", 10_000),
        ("unexplained", "socket of a or queue of link way forward", 10_980 - FRAME - 10_000),
        ("receiver", "node c", 10),
    ]


@pytest.mark.parametrize(
    ("way", "holder"),
    [({"jitter_ns": US * 1000}, "queue or jitter"), ({"jitter_ns": US * 1000, "rate_bps": 0}, "jitter")],
)
def test_what_may_hold_a_frame_back_is_named(way: dict[str, Any], holder: str, tmp_path: Path) -> None:
    run = why_run(
        tmp_path, {"c": [at(11_990, "ac", message())]}, [{"sent": 10, "received": 12_000}], planned(**way)
    )
    assert ("unexplained", f"socket of a or {holder} of link way forward") in [
        one[:2] for one in parts(answer(run))
    ]


def test_times_that_contradict_each_other_are_said(tmp_path: Path) -> None:
    seen: Seen = {"a": [at(0, "ac", message())], "c": [at(12_000, "ac", message())]}
    found = answer(why_run(tmp_path, seen, [{"sent": 0, "received": 11_000}]))
    assert parts(found) and found.notes == ("its times contradict each other by up to 1,000.0 us",)


@given(st.integers(0, 99), st.lists(st.integers(-50, 150), max_size=9))
def test_parts_always_add_up(end: int, times: list[int]) -> None:
    line = Line(0, end)
    for number, t_ns in enumerate(times):
        line.until(t_ns, str(number), "")
    line.until(end, "rest", "")
    assert sum(part.length_ns for part in line.parts) == end
    ends = [part.begin_ns + part.length_ns for part in line.parts]
    assert [part.begin_ns for part in line.parts] == [0, *ends][: len(ends)]


def test_a_stream_is_followed_over_gaps_and_the_wrap_of_its_numbers() -> None:
    stream, begin = Stream(), 2**32 - 100
    first = stream.unwrapped(begin)
    stream.add(1, first, 100, "one")
    later = stream.unwrapped(50)
    assert later == first + 150
    stream.add(2, later, 100, "three")
    assert stream.complete_ns(first + 100) == 1 and stream.complete_ns(later + 100) is None
    stream.add(3, stream.unwrapped(0), 50, "two")
    stream.add(4, stream.unwrapped(0), 50, "two again")
    assert stream.complete_ns(later + 100) == 3
    assert stream.with_byte(first + 149) == ["two", "two again"]


def test_messages_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    path = why_run(tmp_path, {}, [{"sent": 1, "received": 5}, {"sent": 1, "received": 9, "seq": 4}])
    run = Run(path)
    for given_, text in {
        "a.meter": "write FLOW:SEQ",
        "b.meter:1": "no messages of a flow 'b.meter'; it has a.meter",
        "a.meter:2": "the flow's messages are from 0 to 4",
    }.items():
        with pytest.raises(CaptureError, match=text):
            select(run, given_)
    with pytest.raises(CaptureError, match="is no class of this run; its classes: meter"):
        select(run, traffic_class="alarm")
    assert select(run, worst=1)["seq"].to_list() == [4]


def test_runs_of_other_versions_and_without_messages_are_refused(tmp_path: Path) -> None:
    path = why_run(tmp_path, {}, [{"sent": 1, "received": 5}])
    format_of(path, 1)
    with pytest.raises(CaptureError, match="report the run with the version that made it"):
        Run(path)
    format_of(path, 2)
    (path / "messages.parquet").unlink()
    with pytest.raises(CaptureError, match=r"messages\.parquet: does not exist"):
        Run(path)


def test_the_waiting_time_counts_from_the_scheduled_time(tmp_path: Path) -> None:
    found = answer(why_run(tmp_path, {}, [{"sent": 1, "received": 5}]))
    assert found.parts[0].begin_ns == T0 == found.scheduled_ns


def test_the_nodes_of_a_group_are_one_place() -> None:
    parts_ = [Part("unexplained", f"socket of c{n} or queue of link way forward", n, 10) for n in range(2)]
    answers = [Answer("f", n, "c", f"c{n}", "r", n, 10, (part,), None, ()) for n, part in enumerate(parts_)]
    (one,) = sums(answers, {"c0": "c", "c1": "c"})
    assert (one.where, one.total_ns) == ("socket of a node of c or queue of link way forward", 20)
