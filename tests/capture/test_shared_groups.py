"""Tests groups of receivers of which one member gets each message: a message is lost if no member got it,
duplicated if two did.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from rundirs import flow, guarantee, node, plan, plan_of

from capture import messages, records, shared
from capture.delivery import Verdict, verdicts

GROUP = "$share/g/a at b"
SETTLED = ("S,0,0,100,10,20,30,1,settled", "S,0,1,100,40,50,60,1,settled")
READY = ("C,one,subscribed,1,", "C,two,subscribed,5,")


def judged(tmp_path: Path, *lines: str) -> tuple[pl.DataFrame, Verdict]:
    once = guarantee("QoS 2", lossless=True, single=True, while_session=True)
    made = plan_of(
        plan(
            [node("s"), node("one"), node("two")],
            flows=[flow("s", ("set", once))],
            receivers={"set": [GROUP]},
        )
        | {"shared": {GROUP: ["one", "two"]}}
    )
    (tmp_path / "messages.csv").write_text("\n".join(lines) + "\n")
    found = shared.of_groups(records.read(tmp_path / "messages.csv", 1), made)
    table, misfits = messages.join(found, made)
    assert misfits == ()
    (verdict,) = verdicts(table, made)
    return table, verdict


def test_each_message_at_one_member_holds(tmp_path: Path) -> None:
    table, verdict = judged(tmp_path, *READY, *SETTLED, "R,0,0,one,0,25,0", "R,0,1,two,0,55,0")
    assert verdict.holds and verdict.expected == 2
    assert table["receiver"].to_list() == [GROUP, GROUP] and table["copies"].to_list() == [1, 1]


def test_a_message_at_no_member_is_lost_and_one_at_two_is_duplicated(tmp_path: Path) -> None:
    _, verdict = judged(tmp_path, *READY, *SETTLED, "R,0,0,one,0,25,0", "R,0,0,two,0,26,0")
    assert verdict.holds is False
    assert set(verdict.offending) == {("s.meter", 1, GROUP, "lost"), ("s.meter", 0, GROUP, "duplicated")}


@pytest.mark.parametrize("who", ["one", "two"])
def test_what_is_lost_while_a_members_session_breaks_is_not_judged(tmp_path: Path, who: str) -> None:
    _, verdict = judged(tmp_path, *READY, *SETTLED, "R,0,0,one,0,25,0", f"C,{who},failed,70,gone")
    assert verdict.holds and verdict.uncovered == 1


def test_before_its_first_member_is_ready_a_group_is_owed_nothing(tmp_path: Path) -> None:
    late = ("C,one,subscribed,45,", "C,two,subscribed,48,")
    table, verdict = judged(tmp_path, *late, *SETTLED, "R,0,1,two,0,55,0")
    assert table["receiver"].to_list() == [None, GROUP] and verdict.holds and verdict.expected == 1
