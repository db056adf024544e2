"""Tests that a lost message is assigned to what dropped it, and that the verdict is "cannot tell" if two
causes are possible.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from why_runs import Seen, at, counted, lookup, message, planned, why_run

from capture.why.answer import NO_PATH, Run
from capture.why.lost import Counter, Lost
from capture.why.summary import by_class

GONE = {"sent": 0, "received": None}
FULL = "link way forward: full queue (limit 50 packets)"
DRAW = "link way forward: netem's draw of loss"


def fate(path: Path) -> Lost:
    run = Run(path)
    (found,) = (one for one in run.answers(run.messages) if one.latency_ns is None)
    assert found.lost is not None and not found.parts
    return found.lost


def neighbours(before_us: float, after_us: float, flood: int) -> Seen:
    """Returns frames of message 1, which is lost, and of its neighbours 0 and 2, which leave the link with
    the time given; `flood` frames leave it before.
    """
    others = [at(10_000 + n, "ac", b"x" * 50) for n in range(flood)]
    arrived = [at(before_us, "ac", message(0)), at(after_us, "ac", message(2))]
    return {
        "a": [at(0, "ac", message(0)), at(100, "ac", message(1)), at(200, "ac", message(2))],
        "c": sorted([*others, *arrived], key=lambda one: one.t_ns),
    }


def beside(**way: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    near = [{"sent": 0, "received": 10_500}, {"sent": 0, "received": 10_900, "seq": 2}]
    return [*near, GONE | {"seq": 1}], planned(**way)


def test_without_loss_only_a_full_queue_drops(tmp_path: Path) -> None:
    seen: Seen = {"a": [at(0, "ac", message())], "c": []}
    path = why_run(tmp_path, seen, [GONE])
    counted(path, [(-5e5, 3), (5e5, 9), (1.5e6, 9)])
    found = fate(path)
    assert (found.verdict, found.owners, found.last_seen) == ("holds", (FULL,), "capture a")
    assert found.counters == (Counter("link way forward", "dropped", 6, 6),)
    (of,) = by_class(Run(path), Run(path).messages)
    assert (of.lost, of.owners, of.text) == (1, {FULL: 1}, "")


def test_netem_s_draw_is_certain_only_while_the_queue_has_room(tmp_path: Path) -> None:
    messages, of = beside(loss=0.01)
    empty = why_run(tmp_path / "empty", neighbours(10_142, 10_342, 0), messages, of)
    counted(empty, [(-5e5, 0), (5e5, 1), (1.5e6, 1)])
    assert (fate(empty).verdict, fate(empty).owners) == ("holds", (DRAW,))
    full = why_run(tmp_path / "full", neighbours(10_142, 15_000, 60), messages, of)
    counted(full, [(-5e5, 0), (5e5, 1), (1.5e6, 1)])
    assert (fate(full).verdict, fate(full).owners) == ("cannot tell", (FULL, DRAW))


def test_the_first_message_is_lost_to_a_draw_if_little_left_before_the_next(tmp_path: Path) -> None:
    messages, of = beside(loss=0.01)
    for name, flood, wanted in (
        ("empty", 0, ("holds", (DRAW,))),
        ("full", 60, ("cannot tell", (FULL, DRAW))),
    ):
        seen = neighbours(10_142, 15_000, flood)
        first = {point: [one for one in seen[point] if one.data[-100:] != message(0)] for point in seen}
        path = why_run(tmp_path / name, first, messages[1:], of)
        counted(path, [(-5e5, 0), (5e5, 1), (1.5e6, 1)])
        assert (fate(path).verdict, fate(path).owners) == wanted


def test_a_link_whose_counter_did_not_move_is_no_owner(tmp_path: Path) -> None:
    path = why_run(tmp_path, {"a": [at(0, "ac", message())], "c": []}, [GONE])
    counted(path, [(-5e5, 3), (5e5, 3), (1.5e6, 3)])
    assert (fate(path).verdict, fate(path).owners) == ("cannot tell", ())


def test_a_full_socket_of_the_receiver_has_its_counter(tmp_path: Path) -> None:
    seen: Seen = {"a": [at(0, "ac", message())], "c": [at(10_142, "ac", message())]}
    path = why_run(tmp_path, seen, [GONE])
    counted(path, stacks={"UdpRcvbufErrors": 4, "UdpInDatagrams": 90})
    found = fate(path)
    assert (found.verdict, found.owners) == ("holds", ("socket of node c",))
    assert found.counters == (Counter("node c", "UdpRcvbufErrors", 4),)


def test_a_message_that_never_left_is_its_program_s(tmp_path: Path) -> None:
    path = why_run(tmp_path / "program", {"a": [], "c": []}, [{"sent": None, "received": None}])
    assert (fate(path).verdict, fate(path).owners) == ("holds", ("program on node a",))
    path = why_run(tmp_path / "stack", {"a": [], "c": []}, [GONE])
    assert (fate(path).verdict, fate(path).owners) == ("holds", ("network stack of node a",))
    asked = {"a": [lookup(n * 1e6, "ac", False) for n in range(3)], "c": []}
    path = why_run(tmp_path / "lookup", asked, [GONE])
    assert (fate(path).verdict, fate(path).owners) == ("holds", ("address lookup of node a",))
    counter = Counter("node a", "ARP requests for 10.0.0.3 without an answer", 3)
    assert fate(path).counters == (counter,)
    asked["a"].append(lookup(2.1e6, "ca", True))
    path = why_run(tmp_path / "answered", asked, [GONE])
    assert fate(path).owners == ("network stack of node a",)
    path = why_run(tmp_path / "unseen", {"c": []}, [GONE])
    assert (fate(path).verdict, fate(path).owners) == ("cannot tell", ())


def test_captures_that_may_have_missed_frames_prove_nothing(tmp_path: Path) -> None:
    seen: Seen = {"a": [at(0, "ac", message())], "c": []}
    of = planned()
    of["captures"][2]["filter"] = "tcp"
    path = why_run(tmp_path / "filter", seen, [GONE], of)
    counted(path, [(-5e5, 3), (5e5, 9), (1.5e6, 9)])
    assert fate(path).verdict == "cannot tell" and fate(path).text.endswith("missed it: c has a filter")
    path = why_run(tmp_path / "lossy", seen, [GONE])
    counted(path, [(-5e5, 3), (5e5, 9), (1.5e6, 9)])
    about = json.loads((path / "manifest.json").read_text()) | {"captures": {"c": {"dropped_kernel": 2}}}
    (path / "manifest.json").write_text(json.dumps(about))
    assert fate(path).verdict == "cannot tell" and fate(path).text.endswith("missed it: c lost frames")


def test_frames_on_a_path_that_the_plan_does_not_give_are_not_denied(tmp_path: Path) -> None:
    """The plan has a second link between the segments, so it does not say which of the two links a packet
    takes.
    """
    of = planned("request")
    of["links"].append(of["links"][0] | {"name": "other"})
    lost = why_run(tmp_path / "lost", {"a": [at(0, "ac", message())]}, [GONE], of)
    found = fate(lost)
    assert (found.verdict, found.owners, found.last_seen) == ("cannot tell", (), "capture a")
    assert "the plan does not give its path" in found.text
    answered = {"sent": 0, "received": 10_500, "replied": 21_000}
    path = why_run(tmp_path / "late", {"a": [at(0, "ac", message())]}, [answered], of)
    (answer,) = Run(path).answers(Run(path).messages)
    assert [note for note in answer.notes if "frame" in note] == [NO_PATH.format(points="a")]
    hidden = why_run(tmp_path / "hidden", {"a": []}, [answered], of)
    (answer,) = Run(hidden).answers(Run(hidden).messages)
    assert any(note.startswith("no capture saw a frame") for note in answer.notes)
