"""Tests a machine that does not answer: its state shows it, and requests to the others are not delayed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lab_plans import SECOND
from vm_agents import FakeChannel, Told, guest_of

from orchestrator.lab.clock import JumpingClock
from orchestrator.lab.drivers.vm import state_without_answer
from orchestrator.lab.errors import LabError, TimedOut
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import Exec, Finish, Hello, ReadClock, Software, SoftwareState
from orchestrator.lab.vm import dialogue, pauses
from orchestrator.lab.vm.dispatcher import LOOK_NS, WORK_NS, Dispatcher
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.pauses import Pauses
from orchestrator.lab.vm.silence import SILENT_NS, Silence


class Scene(NamedTuple):
    """Two machines, `good` and `mute`, and the launcher of light nodes, which answers at once."""

    loop: Loop
    guests: dict[str, Guest]
    channels: dict[str, FakeChannel]
    told: Told
    silence: Silence
    dispatcher: Dispatcher

    def wait(self, ns: int) -> None:
        self.loop.sleep_until(self.loop.clock.now_ns() + ns)

    def submit(self, request: Any) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = []
        self.dispatcher.submit(request, answers.append)
        return answers


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    loop, told = Loop(JumpingClock(0)), Told()
    guests = {name: guest_of(tmp_path, name=name) for name in ("good", "mute")}
    channels = {name: FakeChannel() for name in guests}
    for name, guest in guests.items():
        guest.channel, guest.state = channels[name], "running"  # type: ignore[assignment]
    silence = Silence(loop, guests, told)

    def light(_: Any, on_answer: Any, __: Any = None) -> int:
        on_answer({"ok": True, "nodes": {"light": {}}})
        return 1

    return Scene(
        loop, guests, channels, told, silence, Dispatcher(loop, light, guests, silence, lambda *_: None)
    )


def test_a_question_to_all_waits_seconds_for_one_and_has_the_others(scene: Scene) -> None:
    answers = scene.submit(Software())
    scene.channels["good"].answer(nodes={"good": {"broker": {"state": "ready"}}})
    scene.wait(LOOK_NS - SECOND)
    assert answers == []
    scene.wait(2 * SECOND)
    assert answers == [{"ok": True, "nodes": {"light": {}, "good": {"broker": {"state": "ready"}}}}]
    assert scene.guests["mute"].state == "silent: no answer from its agent for 5 s"
    assert [code for code, _, _ in scene.told.warnings] == ["silent"]
    asked = len(scene.channels["mute"].seen)
    again = scene.submit(Software())
    scene.channels["good"].answer(nodes={})
    assert len(again) == 1 and len(scene.channels["mute"].seen) == asked, "the silent one is not asked again"


def test_a_late_answer_makes_it_run_again_and_changes_no_answer(scene: Scene) -> None:
    answers = scene.submit(Software())
    scene.channels["good"].answer(nodes={})
    scene.wait(LOOK_NS + SECOND)
    assert not scene.guests["mute"].ready
    scene.channels["mute"].answer(nodes={"mute": {}})
    assert scene.guests["mute"].state == "running"
    assert len(answers) == 1 and "mute" not in answers[0]["nodes"]


def test_hellos_find_it_without_a_request_and_end_a_command_that_waits(scene: Scene) -> None:
    scene.silence.start()
    answers = scene.submit(Exec("mute", ["true"], {}, None))
    for _ in range(SILENT_NS // SECOND + 4):
        scene.wait(SECOND)
        scene.channels["good"].answer()
    assert scene.told.states == [("mute", "silent: no answer from its agent for 10 s")]
    error = "nodes.mute: exec: it is silent: no answer from its agent for 10 s; `vnet restart` boots it again"
    assert answers == [{"ok": False, "error": error}]
    with pytest.raises(LabError, match=r"nodes.mute: exec: it is silent"):
        scene.submit(Exec("mute", ["true"], {}, None))
    assert sum(isinstance(r, Hello) for r in scene.channels["mute"].seen) == 1, "one hello waits, not many"
    scene.channels["mute"].answer()
    assert scene.guests["mute"].state == "running" and len(answers) == 1
    scene.silence.stop()


@pytest.mark.parametrize(
    ("state", "last", "told"),
    [
        ("silent: no answer", "ready", "unknown"),
        ("paused: no space", "failed", "unknown"),
        ("stopped", "ready", "exited"),
        ("failed: its machine ended", "failed", "failed"),
    ],
)
def test_nobody_can_tell_the_state_of_a_program_whose_machine_is_silent(
    scene: Scene, state: str, last: Any, told: str
) -> None:
    scene.guests["mute"].state = state
    known: SoftwareState = {"state": last, "pid": 7, "status": None, "restarts": 0}
    assert state_without_answer(scene.guests["mute"], known) == told


def test_the_last_records_are_asked_of_a_silent_machine_too(scene: Scene) -> None:
    scene.silence.mark(scene.guests["mute"], SILENT_NS)
    answers = scene.submit(Finish())
    assert any(isinstance(r, Finish) for r in scene.channels["mute"].seen)
    scene.channels["good"].answer(pending=0)
    scene.wait(WORK_NS + SECOND)
    assert len(answers) == 1 and answers[0]["ok"]


def test_a_dialogue_with_one_that_is_mute_is_its_error_alone(scene: Scene) -> None:
    def talk() -> dialogue.Dialogue[int]:
        return (yield from dialogue.ask(ReadClock()))["now_ns"]

    dialogues = [(guest, talk()) for guest in scene.guests.values()]
    scene.loop.at(SECOND, lambda: scene.channels["good"].answer(now_ns=7))
    found = dialogue.together(scene.loop, "clocks", 5 * SECOND, dialogues, each=True)
    assert found == ({"good": 7}, {"mute": "clocks: no answer for 5 s"})
    with pytest.raises(TimedOut, match="in vain"):
        dialogue.together(scene.loop, "clocks", SECOND, [(scene.guests["mute"], talk())])


@pytest.fixture
def paused(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Scene, Pauses, list[str], dict[str, int]]]:
    resumed: list[str] = []
    room = {"free": 0}
    monkeypatch.setattr(pauses.shutil, "disk_usage", lambda _: type("Usage", (), room))
    made = Pauses(scene.loop, scene.guests, scene.silence, lambda guest: resumed.append(guest.name))
    yield scene, made, resumed, room
    made.close()


def test_a_full_disk_is_the_machines_state_until_there_is_room(
    paused: tuple[Scene, Pauses, list[str], dict[str, int]],
) -> None:
    scene, made, resumed, room = paused
    made.tell(scene.guests["mute"].node.netns, "/disks/mute/disk.qcow2", "enospc")
    made.tell("somebody-else", "/x", "enospc")
    scene.wait(3 * SECOND)
    assert scene.told.states == [("mute", "paused: no space left for its disk /disks/mute/disk.qcow2")]
    (warning,) = scene.told.warnings
    assert (
        warning[1].startswith("nodes.mute: QEMU paused it: no space left") and "VNET_DISK_DIR" in warning[2]
    )
    assert resumed == []
    room["free"] = pauses.ROOM_BYTES
    scene.wait(3 * SECOND)
    assert resumed == ["mute"]


def test_another_error_of_the_disk_is_not_resumed(
    paused: tuple[Scene, Pauses, list[str], dict[str, int]],
) -> None:
    scene, made, resumed, room = paused
    room["free"] = pauses.ROOM_BYTES
    made.tell(scene.guests["mute"].node.netns, "/disks/mute/disk.qcow2", "eio")
    scene.wait(5 * SECOND)
    assert "cannot be read or written (eio)" in scene.guests["mute"].state and resumed == []
