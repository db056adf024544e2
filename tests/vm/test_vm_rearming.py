"""Tests that clients reconnect after their machine or the broker's machine ended and started again."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from lab_plans import SECOND, machine, make_plan, mqtt_plan, own
from lab_running import Control, Running, needs_vm, until
from vm_agents import Agent, guest_of
from vm_running import Start, qemu_pid

from contract.plan import Event
from orchestrator.lab.clock import MonotonicClock
from orchestrator.lab.loop import Loop
from orchestrator.lab.vm import dialogue
from orchestrator.lab.vm.rearming import Rearming, recorded

LINES = """\
S,4,0,90,10,11,12,1,settled
C,c1,connected,5,new session
S,4,2,90,10,11,12,1,settled
R,4,1,"a,b",0,13,0
S,5,7,90,10,11,12,1,settled
"""


def test_what_the_records_hold_is_counted_by_flow(tmp_path: Path) -> None:
    (tmp_path / "m").write_text(LINES)
    assert recorded(tmp_path / "m", {4, 6}) == {4: {0, 2}, 6: set()}
    assert recorded(tmp_path / "none", {4}) == {4: set()}


def item(node: str, endpoint: str, *flows: int) -> dict[str, Any]:
    role = {"name": "m", "session": {"endpoint": endpoint, "connect_ns": 0}}
    return {"node": node, "software": role, "flows": [{"number": n} for n in flows]}


class Scene:
    def __init__(self, directory: Path) -> None:
        self.loop = Loop(MonotonicClock(0))
        self.agent = Agent(directory / "agent.sock")
        self.guest = guest_of(directory, self.loop)
        self.rearming = Rearming(directory / "messages.csv")
        self.rearming.records.write_text(LINES)

    def again(self) -> list[dict[str, Any]]:
        """Sets up machine `a` again, and returns the requests that its agent got."""
        before = len(self.agent.seen)
        again = self.rearming.again("a", self.loop.clock, lambda t: t + 500)
        assert dialogue.together(self.loop, "again", 60 * SECOND, [(self.guest, again)]) == ({"a": None}, {})
        return self.agent.seen[before:]


def test_clients_are_armed_again_with_what_is_left_of_their_life_before(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.rearming.armed([item("a", "c1", 4, 6), item("b", "other", 5)])
    assert scene.again() == [], "it has not ended"
    scene.rearming.t0_ns = scene.loop.clock.now_ns() - 9 * SECOND
    assert scene.rearming.ended("a", scene.rearming.t0_ns + 4 * SECOND) == ["c1"]
    assert scene.rearming.ended("a", scene.rearming.t0_ns + 5 * SECOND) == [], "it ended before"
    workload, go = scene.again()
    (armed,) = workload["items"]
    resume, unheard = armed["resume"]["4"], armed["resume"]["6"]
    assert (resume["next"], resume["open"], resume["ended_ns"]) == (3, [1], 4 * SECOND)
    assert (unheard["next"], unheard["open"], unheard["ended_ns"]) == (0, [], 4 * SECOND)
    assert 9 * SECOND <= resume["begins_ns"] < 20 * SECOND
    assert go["t0_ns"] == scene.rearming.t0_ns + 500, "on the machine's own clock"
    assert scene.again() == [], "once for each end"


def test_a_lost_machines_clients_are_written_down_as_gone(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.rearming.armed([item("a", "c1")])
    scene.rearming.lost("a", 7)
    assert scene.rearming.records.read_text() == LINES, "the scenario has not begun"
    scene.rearming.t0_ns = 1
    scene.rearming.lost("a", 7)
    assert scene.rearming.records.read_text() == LINES + "C,c1,disconnected,7,its machine ended\n"


def test_after_the_load_nobody_is_armed_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.rearming.armed([item("a", "c1")])
    scene.rearming.t0_ns = 1
    scene.rearming.ended("a", 2)
    scene.rearming.over = True
    assert scene.again() == []


def fates(running: Running, publisher: str) -> dict[int, str]:
    """Returns the outcome of each message by sequence number; asserts that each is recorded once."""
    number = [flow.sender for flow in running.plan.flows].index(publisher)
    raw = (running.run_dir / "raw" / "messages.csv").read_text().splitlines()
    sent = [ln.split(",") for ln in raw if ln.startswith(f"S,{number},")]
    twice = [seq for seq, count in Counter(int(f[2]) for f in sent).items() if count > 1]
    assert not twice, (publisher, twice)
    return {int(f[2]): f[-1] for f in sent}


def anew(running: Running, control: Control, action: str, name: str, client: str) -> None:
    """Carries out `action` on the machine, then waits until the client has connected again."""
    records, word = running.run_dir / "raw" / "messages.csv", f"C,{client},connected"
    before = records.read_text().count(word)
    answer = control.call("node", action=action, nodes=[name])
    assert answer["ok"], answer
    until(90, f"{client} to come back", lambda: records.read_text().count(word) > before)


@needs_vm
@pytest.mark.root
@pytest.mark.slow
# test_vm_operations.py restarts and starts machines; the tests above check that messages are accounted for
@pytest.mark.sweep
def test_restarted_and_killed_machines_come_back_and_all_messages_are_accounted_for(start: Start) -> None:
    """Shows that all messages are accounted for after client1 was restarted, then killed and started, and the
    broker restarted.
    """
    plan = mqtt_plan(own("vmtwice"), clients=2, hold_ns=100 * SECOND)
    nodes = tuple(machine(n) if n.name != "client0" else n for n in plan.nodes)
    event = Event("hold", 3 * SECOND, "restart", ("client1",), {}, "again")
    lengths = {"ramp_ns": plan.ramp_ns, "hold_ns": plan.hold_ns}
    owed = {"flows": plan.flows, "receivers": plan.receivers}
    plan = make_plan(own("vmtwice"), nodes, events=(event,), on_node_failure="continue", **lengths, **owed)
    plan = dataclasses.replace(plan, drain_ns=15 * SECOND)
    running = start(plan, "--scenario")
    running.await_event("event", timeout=280, action="restart", ok=True)
    control = Control(running)
    os.kill(qemu_pid(control, "client1"), signal.SIGKILL)
    running.await_event("exited", node="client1", software="agent")
    anew(running, control, "start", "client1", "client1")
    anew(running, control, "restart", "broker", "client0")
    assert running.finish(200) == 0, (running.events[-3:], running.stderr)
    assert running.leftovers() == []

    for publisher in ("client0", "client1"):
        found = fates(running, publisher)
        assert sorted(found) == list(range(len(found))), f"{publisher}: no message is missing"
        assert len(found) > 90 * 20, f"{publisher}: its schedule went on to the end"
        outcomes = Counter(found.values())
        assert outcomes["settled"] > 20 * 20, (publisher, outcomes)
        assert max(seq for seq, outcome in found.items() if outcome == "settled") > len(found) - 100, outcomes
    assert "unsent" in fates(running, "client1").values(), "what was due while it was off"
    raw = (running.run_dir / "raw" / "messages.csv").read_text()
    # Records that the killed agent wrote after the last reading are lost, perhaps that of its connection too.
    assert raw.count("C,client1,connected") >= 3, "first, started, and to the broker's second life"
    assert "C,client1,disconnected," in raw and "its machine ended" in raw
