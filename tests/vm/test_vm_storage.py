"""Tests the directories for disks and snapshots of machines, and what happens when they are full."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from lab_plans import machine, node
from vm_agents import Agent, Told, guest_of

from orchestrator.lab import cleanup
from orchestrator.lab.clock import MonotonicClock
from orchestrator.lab.errors import LabError
from orchestrator.lab.launcher import Launcher
from orchestrator.lab.loop import Loop
from orchestrator.lab.vm import snapshots, storage
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.workers import Workers


@pytest.fixture
def disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "disks"
    monkeypatch.setenv(storage.VARIABLE, str(place))
    return place


def test_disks_are_not_in_the_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(storage.VARIABLE, raising=False)
    place = storage.of_lab(Path("/run/vnet/demo"))
    assert place.parent == Path("/var/lib/vnet/disks") and place.name.startswith("demo-")
    assert place != storage.of_lab(Path("/tmp/mine/demo")), "two labs of one name have two directories"
    assert place == storage.of_lab(Path("/run/vnet/demo")), (
        "a later lab finds its snapshots' paths as they were"
    )


def test_a_lab_begins_with_an_empty_directory_and_takes_only_its_own_away(
    disks: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state" / "demo"
    state.mkdir(parents=True)
    place = storage.make(state)
    (place / "a").mkdir()
    (place / "a" / "disk.qcow2").touch()
    assert storage.make(state) == place and list(place.iterdir()) == []
    assert place.stat().st_mode & 0o777 == disks.stat().st_mode & 0o777 == 0o711
    (disks / "other-1").mkdir()
    (state / "disks").write_text(f"{tmp_path}/state\n")
    assert storage.remove(state) == [] and state.is_dir(), "a file that names another directory moves nothing"
    (state / "disks").write_text(f"{place}\n")
    assert storage.remove(state) == [str(place)] and (disks / "other-1").is_dir()
    (disks / "other-1").rmdir()
    storage.make(state)
    assert storage.remove(state) == [str(place)] and disks.is_dir(), "the user chose it, so it stays"


def test_teardown_after_a_crash_removes_disks(
    disks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state" / "novm"
    state.mkdir(parents=True)
    place = storage.make(state)
    (state / "lab.json").write_text("{}")
    monkeypatch.setenv(storage.VARIABLE, str(tmp_path / "elsewhere"))  # the setting of another shell
    assert f"directory {place}" in cleanup.leftovers("novm", state.parent)
    assert str(place) in cleanup.destroy("novm", state.parent).directories
    assert not place.exists() and not state.exists()


def test_a_directory_that_cannot_be_made_is_named(disks: Path, tmp_path: Path) -> None:
    disks.touch()
    with pytest.raises(LabError, match=r"disks of virtual machines cannot be kept there: .*VNET_DISK_DIR"):
        storage.make(tmp_path / "demo")


def test_disks_without_room_are_refused(disks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 60_000_000}))
    nodes = [machine(node("x", n, f"m{n}")) for n in range(3)]
    storage.insist(nodes[:2], disks)
    with pytest.raises(LabError, match=r"nodes.m0: disks of 3 .* about 75 MB at .*disks, 60 MB are free"):
        storage.insist(nodes, disks)


def test_memory_of_a_process_is_read() -> None:
    held = storage.resident_bytes(os.getpid())
    assert held is not None and held > 1_000_000
    assert storage.resident_bytes(2**22 + 1) is None


class FullDisk:
    """Machines whose memory cannot be saved, or whose disk cannot be copied; they keep running."""

    def __init__(self, refuses: bool) -> None:
        self.refuses = refuses

    def save(self, guest: Guest, memory: Path) -> None:
        memory.write_bytes(b"a part")
        if self.refuses:
            raise LabError(f"nodes.{guest.name}: libvirt cannot save it: No space left on device")
        guest.domain = None

    def restore(self, guest: Guest, memory: Path) -> Any:
        assert memory.exists()
        return object()


class Clocks(Told):
    def clock(self, guest: Guest) -> Any:
        return type("Clock", (), {"forget": lambda self: None})()


@pytest.mark.parametrize("refuses", [True, False])
def test_a_machine_without_a_snapshot_for_want_of_room_is_within_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: bool
) -> None:
    loop = Loop(MonotonicClock(0))
    agent = Agent(tmp_path / "agent.sock")
    guest, told, meant, workers = guest_of(tmp_path, loop), Clocks(), set[str](), Workers(loop, 2, None)
    guest.domain = object()
    agent.close()
    (tmp_path / "agent.sock").unlink()
    again = Agent(tmp_path / "agent.sock")  # the agent of the second connection

    def connect(of: Guest) -> Launcher:
        return Launcher(loop, of.directory / "agent.sock", lambda _: None, lambda _: None)

    def no_room(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(snapshots, "_copy", no_room)
    made = snapshots.Snapshots(
        loop, workers, FullDisk(refuses), connect, told, meant, lambda _: None,  # type: ignore[arg-type]
    )  # fmt: skip
    with pytest.raises(LabError, match=r"nodes.a: .*No space left on device"):
        made.take([guest], "one")
    assert guest.ready and meant == set(), "its agent answers, and its end would be told"
    assert again.seen[0]["op"] == "hello" and ("resume" in [r["op"] for r in again.seen]) is False
    assert list(tmp_path.glob("one.*")) == [], "half a snapshot is none"
    workers.close()
    again.close()


def test_a_snapshot_that_does_not_fit_is_refused_before_it_stops_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = guest_of(tmp_path)
    monkeypatch.setattr(snapshots.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(LabError, match=r"snapshot one: .*1 machine\(s\) take up to .* free; .*VNET_DISK_DIR"):
        snapshots.insist_on_room([guest], "one")
