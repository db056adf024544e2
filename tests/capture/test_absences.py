"""Tests receivers that unsubscribe for a while: messages sent meanwhile are not expected of them, all others
are.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
from rundirs import flow, guarantee, node, plan, plan_of

from capture import messages, records
from capture.absences import WAITED_NS
from capture.delivery import Verdict, verdicts

S = 10**9
READY = "C,one,subscribed,1,"
AWAY = (f"C,one,unsubscribing,{20 * S},", f"C,one,unsubscribed,{21 * S},", f"C,one,subscribed,{30 * S},")


def sent(seq: int, at_s: float) -> str:
    at = int(at_s * S)
    return f"S,0,{seq},100,{at},{at + 1},{at + 2},1,settled"


def judged(tmp_path: Path, *lines: str) -> tuple[pl.DataFrame, Verdict]:
    once = guarantee("QoS 1", lossless=True)
    made = plan_of(
        plan([node("s"), node("one")], flows=[flow("s", ("set", once))], receivers={"set": ["one"]})
    )
    (tmp_path / "messages.csv").write_text("\n".join(lines) + "\n")
    table, _ = messages.join(records.read(tmp_path / "messages.csv", 1), made)
    (verdict,) = verdicts(table, made)
    return table, verdict


def test_what_is_sent_meanwhile_is_not_expected(tmp_path: Path) -> None:
    table, verdict = judged(tmp_path, READY, *AWAY, sent(0, 10), f"R,0,0,one,0,{11 * S},0", sent(1, 25))
    assert table["receiver"].to_list() == ["one", None]
    assert verdict.holds and verdict.expected == 1 and verdict.lost == 0


def test_what_is_sent_before_and_after_it_is_expected(tmp_path: Path) -> None:
    before = 20 - WAITED_NS / S - 1
    _, verdict = judged(tmp_path, READY, *AWAY, sent(0, before), sent(1, 30.5))
    assert verdict.holds is False and verdict.lost == 2


def test_what_waited_at_the_request_may_be_lost_and_what_arrives_counts(tmp_path: Path) -> None:
    table, verdict = judged(tmp_path, READY, *AWAY, sent(0, 19), sent(1, 19.5), f"R,0,1,one,0,{20 * S},0")
    assert table["receiver"].to_list() == [None, "one"] and verdict.holds and verdict.expected == 1


def test_without_a_new_subscription_nothing_more_is_expected(tmp_path: Path) -> None:
    _, verdict = judged(tmp_path, READY, AWAY[0], sent(0, 10), f"R,0,0,one,0,{11 * S},0", sent(1, 900))
    assert verdict.holds and verdict.expected == 1
