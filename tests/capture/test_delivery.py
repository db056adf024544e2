"""Tests the verdicts on delivery guarantees, message by message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rundirs import flow, guarantee, node, plan, received, run_dir, sent, session

from capture.delivery import Verdict, verdicts
from capture.reduce import reduce_run
from contract import rundir

NOTHING = guarantee("nothing", lossless=False, single=False)


def all_judged(tmp_path: Path, lines: list[str], of: dict[str, Any]) -> list[Verdict]:
    run = run_dir(tmp_path / "run", of)
    (run / "raw" / "messages.csv").write_text("".join(lines))
    reduce_run(run)
    return verdicts(pl.read_parquet(run / "messages.parquet"), rundir.read_plan(run))


def judged(
    tmp_path: Path, lines: list[str], what: dict[str, Any] | None = None, *,
    patience_s: float | None = 3, **of_flow: Any,
) -> Verdict:  # fmt: skip
    """Returns the verdict on one flow from p to s, where s is subscribed from the start."""
    nodes = [node("p"), node("s", patience_s=patience_s)]
    owed = plan(nodes, [flow("p", ("subscribers", what or guarantee()), **of_flow)], {"subscribers": ["s"]})
    (verdict,) = all_judged(tmp_path, [session("s", "subscribed", 0), *lines], owed)
    return verdict


@pytest.mark.parametrize(
    ("kept", "lost", "twice", "overtaken"),
    [
        ({"lossless": False, "single": True}, True, False, True),
        ({"lossless": True, "single": False}, False, True, True),
        ({"lossless": True, "single": True}, False, False, True),
        ({"lossless": False, "single": False, "ordered": True}, True, True, False),
    ],
)
def test_each_guarantee_forbids_what_it_excludes(
    tmp_path: Path, kept: dict[str, bool], lost: bool, twice: bool, overtaken: bool
) -> None:
    """Shows whether each guarantee still holds after a loss, after a duplicate, and after a message out of
    order.
    """
    outcome = "settled" if kept["lossless"] else "sent"
    what = guarantee("it", **kept)
    whole = [sent(0, n, n, outcome) for n in (1, 2, 3)] + [received(0, n, "s", n + 0.1) for n in (1, 3)]
    two = received(0, 2, "s", 2.1)
    missing = judged(tmp_path / "a", whole, what)
    assert (missing.holds, missing.lost, missing.duplicated, missing.expected) == (lost, 1, 0, 3)
    doubled = judged(tmp_path / "b", [*whole, two, two], what)
    assert (doubled.holds, doubled.lost, doubled.duplicated) == (twice, 0, 1)
    late = judged(tmp_path / "c", [*whole, received(0, 2, "s", 3.2)], what)
    assert (late.holds, late.disordered) == (overtaken, 1)
    clean = judged(tmp_path / "d", [*whole, two], what)
    assert clean.holds is True and clean.offending == () and clean.reason == "holds for all 3 deliveries"
    assert ("1 lost or unanswered, which it permits" in missing.reason) == lost
    assert missing.offending == (() if lost else (("p.meter", 2, "s", "lost"),))
    assert doubled.offending == (() if twice else (("p.meter", 2, "s", "duplicated"),))
    assert late.offending == (() if overtaken else (("p.meter", 2, "s", "disordered"),))


def test_what_was_not_sent_or_not_settled_is_counted_apart(tmp_path: Path) -> None:
    lines = [sent(0, 1, 1), received(0, 1, "s", 1.1)]
    lines += [sent(0, 2, 2, "unsent"), sent(0, 3, 3, "dropped"), sent(0, 4, 4, "unsettled")]
    verdict = judged(tmp_path, lines)
    assert verdict.holds is True and (verdict.expected, verdict.unsent, verdict.unsettled) == (1, 2, 1)
    assert "2 scheduled but never sent" in verdict.reason and "1 not settled" in verdict.reason


def test_what_arrived_is_judged_also_where_it_did_not_go_to_all(tmp_path: Path) -> None:
    """Shows that a duplicate counts although the sender, which cannot reach one of two receivers, records the
    message as unsent.
    """
    nodes = [node("p"), node("near", listens=True), node("far", listens=True)]
    owed = plan(nodes, [flow("p", ("both", guarantee()), pattern="push")], {"both": ["near", "far"]})
    two = received(0, 1, "near", 1.1)
    (verdict,) = all_judged(tmp_path, [sent(0, 1, 1, "unsent"), two, two], owed)
    assert (verdict.holds, verdict.expected, verdict.lost, verdict.duplicated) == (False, 1, 0, 1)
    assert verdict.unsent == 1


def test_nothing_sent_cannot_be_judged(tmp_path: Path) -> None:
    verdict = judged(tmp_path, [sent(0, 1, 1, "unsent")])
    assert verdict.holds is None and "cannot tell" in verdict.reason


def test_where_nothing_is_promised_losses_are_counted_and_nothing_is_judged(tmp_path: Path) -> None:
    lines = [sent(0, 1, 1, "sent"), received(0, 1, "s", 1.1), sent(0, 2, 2, "sent")]
    verdict = judged(tmp_path, lines, NOTHING)
    assert verdict.holds is None and (verdict.expected, verdict.lost) == (2, 1)
    assert "nothing is guaranteed for 2 deliveries" in verdict.reason


def test_a_request_is_kept_when_its_reply_is_back(tmp_path: Path) -> None:
    lines = [sent(0, 1, 1), received(0, 1, "s", 1.1), received(0, 1, "s", 1.2, leg=1)]
    lines += [sent(0, 2, 2, "unsettled"), received(0, 2, "s", 2.1)]  # the reply may still be on its way
    verdict = judged(tmp_path / "a", lines, pattern="request")
    assert verdict.holds is True and (verdict.expected, verdict.lost, verdict.unsettled) == (2, 0, 1)
    lossy = judged(tmp_path / "b", [*lines, sent(0, 3, 3, "unsettled")], NOTHING, pattern="request")
    # Nobody retransmits these two: of message 3 the request is lost, of message 2 the reply.
    assert (lossy.expected, lossy.lost, lossy.unanswered, lossy.unsettled) == (3, 1, 2, 2)
    wrong = judged(tmp_path / "c", [sent(0, 1, 1), received(0, 1, "s", 1.1)], pattern="request")
    assert wrong.holds is False and wrong.offending == (("p.meter", 1, "s", "unanswered"),)
    again = received(0, 1, "s", 1.3, leg=1)
    twice = judged(tmp_path / "d", [*lines, again], pattern="request")
    assert twice.holds is False and twice.duplicated == 1


def test_a_deadline_is_missed_by_coming_late_or_not_at_all(tmp_path: Path) -> None:
    lines = [sent(0, n, n) for n in (1, 2, 3)]
    lines += [received(0, 1, "s", 1.25), received(0, 2, "s", 2.3)]
    assert judged(tmp_path / "a", lines, NOTHING, deadline_s=0.25).late == 2
    assert judged(tmp_path / "b", lines, NOTHING).late == 0
    back = [received(0, 1, "s", 1.5, leg=1), received(0, 2, "s", 2.55, leg=1)]
    assert judged(tmp_path / "c", [*lines, *back], NOTHING, pattern="request", deadline_s=0.5).late == 2


def test_a_deadline_is_missed_also_by_what_no_promise_is_judged_of(tmp_path: Path) -> None:
    """Shows that messages whose guarantee is not judged (unsettled or unsent) still count as late, so that
    guarantees and message counts agree.
    """
    lines = [sent(0, 1, 1, "unsettled"), sent(0, 2, 2, "unsent"), sent(0, 3, 3), received(0, 3, "s", 3.1)]
    verdict = judged(tmp_path, lines, deadline_s=0.25)
    assert (verdict.holds, verdict.expected, verdict.late) == (True, 1, 2)


def test_a_flow_that_goes_round_owes_each_message_to_one(tmp_path: Path) -> None:
    nodes = [node("p"), node("a", listens=True), node("b", listens=True)]
    owed = plan(nodes, [flow("p", ("both", guarantee())) | {"spread": "round-robin"}], {"both": ["a", "b"]})
    lines = [sent(0, n, n) for n in range(4)]
    kept = [received(0, 0, "a", 0.1), received(0, 1, "b", 1.1), received(0, 2, "a", 2.1)]
    (verdict,) = all_judged(tmp_path / "a", [*lines, *kept], owed)
    assert (verdict.expected, verdict.lost) == (4, 1) and verdict.offending == (("p.meter", 3, "b", "lost"),)
    (verdict,) = all_judged(tmp_path / "b", [*lines, *kept, received(0, 3, "a", 3.1)], owed)
    assert verdict.lost == 1, "it was another's turn"
    warned = json.loads((tmp_path / "b" / "run" / "manifest.json").read_text())["warnings"]
    assert "reduce-unexpected" in {one["code"] for one in warned}


def outage(at: float) -> list[str]:
    """Returns the records of an outage: a message lost at 10 s, the end of the session at `at`, a later
    message, and a disconnection at the end.
    """
    lines = [
        sent(0, 1, 10),
        session("s", "disconnected", at, "keep alive"),
        session("s", "subscribed", at + 1),
    ]
    return [*lines, sent(0, 2, 90), received(0, 2, "s", 90.1), session("s", "disconnected", 99)]


def test_a_session_that_broke_soon_after_does_not_cover_the_message(tmp_path: Path) -> None:
    soon = judged(tmp_path / "a", outage(12))  # the sender's patience is 3 s
    assert (soon.holds, soon.lost, soon.uncovered) == (True, 1, 1) and "session broke" in soon.reason
    late = judged(tmp_path / "b", outage(14))
    assert (late.holds, late.lost, late.uncovered) == (False, 1, 0)
    kept = judged(tmp_path / "c", outage(12), patience_s=None)
    assert (kept.holds, kept.uncovered) == (False, 0)
    through = judged(tmp_path / "d", outage(12), guarantee("through all", while_session=False))
    assert (through.holds, through.uncovered) == (False, 0)


def test_what_was_lost_with_its_session_is_lost_though_nobody_settled_it(tmp_path: Path) -> None:
    """Shows that a message lost with its session counts as lost although no record settles it, as with QoS 2
    over a clean session.
    """
    lines = [sent(0, 1, 10, "unsettled"), *outage(12)[1:]]
    found = judged(tmp_path, lines)
    assert (found.holds, found.expected, found.lost, found.uncovered) == (True, 2, 1, 1)
    assert found.reason.startswith("holds for all 1 deliveries; 1 not settled")
    assert "1 lost or unanswered while a session broke, of which nothing is guaranteed" in found.reason
    sender = [sent(0, 1, 10, "unsettled"), session("p", "failed", 40), session("p", "connected", 41)]
    found = judged(tmp_path / "sender", [*sender, *outage(12)[3:]])
    assert (found.holds, found.expected, found.lost, found.uncovered) == (True, 2, 1, 1), "whenever it breaks"
    kept = judged(tmp_path / "kept", lines, patience_s=None)
    assert (kept.holds, kept.expected, kept.lost, kept.unsettled) == (True, 1, 0, 1), "it may still come"


@pytest.mark.parametrize(("who", "what"), [("p", "failed"), ("s", "disconnected")])
def test_a_connection_breaks_at_either_end_and_its_patience_is_the_senders(
    tmp_path: Path, who: str, what: str
) -> None:
    """Shows that a break of the connection at either end excuses a loss within the sender's patience, as for
    messages over TCP, where a listening receiver has no session of its own.
    """
    lines = [sent(0, 1, 10, "sent"), session(who, what, 12, "reset")]
    lines += [sent(0, 2, 90, "sent"), received(0, 2, "s", 90.1), session("p", "disconnected", 99)]

    def verdict(place: str, patience_s: float, pattern: str) -> tuple[bool | None, int, int]:
        nodes = [node("p", patience_s=patience_s), node("s", listens=True, patience_s=None)]
        owed = plan(nodes, [flow("p", ("s", guarantee()), pattern=pattern)], {"s": ["s"]})
        (found,) = all_judged(tmp_path / place, lines, owed)
        return found.holds, found.lost, found.uncovered

    assert verdict("a", 900, "push") == (True, 1, 1)
    assert verdict("b", 1, "push") == (False, 1, 0)
    assert verdict("c", 900, "publish") == (False, 1, 0), "a broker stands between, and had it"


def test_the_break_of_one_connection_excuses_no_loss_on_another(tmp_path: Path) -> None:
    """Shows that a broken connection to one receiver does not excuse a loss at the other, as for messages
    over TCP to two receivers.
    """
    lines = [sent(0, 1, 10, "sent"), session("p", "disconnected", 12, "s: reset", "s")]
    lines += [sent(0, 2, 90, "sent"), received(0, 2, "s", 90.1), received(0, 2, "t", 90.1)]
    nodes = [node("p", patience_s=900), *(node(name, listens=True, patience_s=None) for name in "st")]
    owed = plan(nodes, [flow("p", ("both", guarantee()), pattern="push")], {"both": ["s", "t"]})
    (found,) = all_judged(tmp_path, lines, owed)
    assert (found.holds, found.uncovered) == (False, 1)
    assert [who for _, _, who, _ in found.offending] == ["t"]


def test_the_good_bye_at_the_end_excuses_nothing(tmp_path: Path) -> None:
    assert judged(tmp_path, [sent(0, 1, 10), session("s", "disconnected", 11)]).holds is False


def test_each_class_and_promise_has_its_own_verdict(tmp_path: Path) -> None:
    weak = guarantee("weak", lossless=False)
    nodes = [node(name) for name in ("p", "q", "s", "t")]
    flows = [
        flow("p", ("few", guarantee()), ("many", weak), class_="a"),
        flow("q", ("many", weak), class_="b"),
    ]
    owed = plan(nodes, flows, {"few": ["s"], "many": ["t"]})
    lines = [session(name, "subscribed", 0) for name in ("s", "t")]
    lines += [sent(0, 0, 1), received(0, 0, "t", 1.1), sent(1, 0, 1)]
    found = all_judged(tmp_path, lines, owed)
    assert [(v.class_, v.guarantee, v.holds, v.lost) for v in found] == [
        ("a", "all", False, 1), ("a", "weak", True, 0), ("b", "weak", True, 1),
    ]  # fmt: skip


def test_guarantees_of_one_name_that_differ_are_judged_apart(tmp_path: Path) -> None:
    flows = [flow("p", ("s", guarantee("mine"))), flow("q", ("s", guarantee("mine", lossless=False)))]
    owed = plan([node("p"), node("q"), node("s", listens=True)], flows, {"s": ["s"]})
    found = all_judged(tmp_path, [sent(0, 0, 1), sent(1, 0, 1)], owed)
    assert [v.holds for v in found] == [False, True]


def test_receivers_of_one_message_may_be_promised_the_same_on_other_terms(tmp_path: Path) -> None:
    """Shows, for a clean and a kept MQTT session with QoS 1, that only the clean one's break
    excuses a loss.
    """
    kept = guarantee("QoS 1", while_session=False)
    nodes = [node("p"), node("clean"), node("kept", patience_s=None)]
    flows = [flow("p", ("kept", kept), ("clean", guarantee("QoS 1")))]
    owed = plan(nodes, flows, {"clean": ["clean"], "kept": ["kept"]})
    lines = [session(name, "subscribed", 0) for name in ("clean", "kept")]
    lines += [sent(0, 1, 10), session("clean", "disconnected", 11), session("clean", "subscribed", 12)]
    lines += [sent(0, 2, 20), *(received(0, 2, name, 20.1) for name in ("clean", "kept"))]
    found = all_judged(tmp_path / "a", [*lines, received(0, 1, "kept", 10.1)], owed)
    assert [(v.holds, v.lost, v.uncovered) for v in found] == [(True, 0, 0), (True, 1, 1)]
    found = all_judged(tmp_path / "b", lines, owed)
    assert [(v.holds, v.lost, v.uncovered) for v in found] == [(False, 1, 0), (True, 1, 1)]
