"""Tests booted machines that one lab saves and the next restores: which are restored, and how unusable ones
are handled.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from lab_plans import SECOND, make_plan
from vm_agents import Agent, guest_of

from orchestrator.lab.clock import MonotonicClock
from orchestrator.lab.driver import DriverContext
from orchestrator.lab.errors import LabError
from orchestrator.lab.launcher import Launcher
from orchestrator.lab.loop import Loop
from orchestrator.lab.vm.boot import BootResult
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.names import Names
from orchestrator.lab.vm.restoring import Restoring
from orchestrator.lab.vm.snapshots import Snapshots
from orchestrator.lab.vm.startup import Startup
from orchestrator.lab.vm.store import Store, key_of
from orchestrator.lab.vm.watch import Watch
from orchestrator.lab.vm.workers import Workers


class Machines:
    """Machines without QEMU, with an agent each; booting takes `boot_s`, restoring `restore_s`."""

    def __init__(self, boot_s: float = 0.2, restore_s: float = 0.0) -> None:
        self.boot_s, self.restore_s = boot_s, restore_s
        self.did: list[tuple[str, str]] = []
        self.agents: dict[str, Agent] = {}
        self.broken: set[str] = set()  # machines whose memory cannot be read or written

    def prepare(self, guest: Guest) -> str:
        guest.directory.mkdir(exist_ok=True)
        return f"<domain>{guest.name} {guest.node.vm}</domain>"

    def create(self, guest: Guest) -> str:
        self.prepare(guest)
        self._begin("create", guest, self.boot_s)
        return "domain"

    def save(self, guest: Guest, memory: Path) -> None:
        self.did.append(("save", guest.name))
        memory.write_text("the memory of " + guest.name)
        self.destroy(guest)

    def restore(self, guest: Guest, memory: Path) -> str:
        if guest.name in self.broken:
            raise LabError("libvirt refuses: the save image is corrupted")
        assert memory.read_text() == "the memory of " + guest.name
        self._begin("restore", guest, self.restore_s)
        return "domain"

    def destroy(self, guest: Guest) -> None:
        if (agent := self.agents.pop(guest.name, None)) is not None:
            agent.close()
        (guest.directory / "agent.sock").unlink(missing_ok=True)
        guest.domain = None

    def _begin(self, how: str, guest: Guest, slow_s: float) -> None:
        self.did.append((how, guest.name))
        time.sleep(slow_s)  # the machine takes this long to start
        self.agents[guest.name] = Agent(guest.directory / "agent.sock")


class Scene:
    """The parts of one lab, with a snapshot store that remains after the lab."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = Store(directory / "snapshots")
        self.store.directory.mkdir()
        self.kernel = directory / "kernel"
        self.kernel.touch()
        self.loop = Loop(MonotonicClock(0))
        self.workers = Workers(self.loop, 8, None)
        self.told: list[dict[str, Any]] = []
        plan = make_plan("demo", ())
        at = DriverContext(
            plan, self.loop, None, directory, Path("agent"), None, self.told.append, print  # type: ignore[arg-type]
        )  # fmt: skip
        self.watch, self._at = Watch(at), at

    def lab(self, machines: Machines, guests: Sequence[Guest]) -> tuple[BootResult, dict[str, str]]:
        """Brings one lab up and ends it; returns (the boot result, how each machine started)."""

        def connect(guest: Guest) -> Launcher:
            return Launcher(self.loop, guest.directory / "agent.sock", lambda _: None, lambda _: None)

        startup = Startup(
            self._at,
            machines,
            None,
            self.workers,
            self.watch,
            connect,
            set(),
            Names(self.loop, list, self.watch.warn),  # type: ignore[arg-type]
        )
        restoring = Restoring(startup, machines, self.store, self.loop, self.workers, self.watch)  # type: ignore[arg-type]
        came = restoring.bring_up(guests)
        self.seen = {g.name: list(machines.agents[g.name].seen) for g in guests if g.name in came.read}
        for guest in guests:
            if guest.channel is not None:
                guest.channel.close()
                guest.channel = None
            machines.destroy(guest)
        return came, restoring.starts.nodes

    def guests(self, *names: str) -> list[Guest]:
        found = [guest_of(self.directory / name, name=name) for name in names]
        for guest in found:
            guest.image = dataclasses.replace(guest.image, kernel=self.kernel, initrd=None)
        return found

    def warnings(self) -> list[str]:
        return [e["text"] for e in self.told if e["event"] == "warning"]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.workers.close()


def test_the_first_lab_keeps_the_next_takes_and_a_new_machine_is_kept_too(scene: Scene) -> None:
    machines = Machines()
    came, how = scene.lab(machines, scene.guests("a", "b"))
    assert came.read.keys() == {"a", "b"} and how == {"a": "kept", "b": "kept"}
    assert sorted(machines.did[:2]) == [("create", "a"), ("create", "b")]
    assert [what for what, _ in machines.did] == ["create"] * 2 + ["save"] * 2 + ["restore"] * 2

    later = Machines()
    came, how = scene.lab(later, scene.guests("a", "b", "c"))
    assert how == {"a": "restored", "b": "restored", "c": "kept"}
    assert sorted(later.did[:2]) == [("restore", "a"), ("restore", "b")]
    assert later.did[2:] == [("create", "c"), ("save", "c"), ("restore", "c")]
    ops = [r["op"] for r in scene.seen["a"]]
    assert ops == ["hello", "resume", "create", "configure", "exec", "messages"]
    assert scene.warnings() == []


def test_each_return_has_its_own_time_and_random_numbers(scene: Scene) -> None:
    scene.lab(Machines(), scene.guests("a", "b"))
    seeds = []
    for _ in range(2):
        began = scene.loop.clock.now_ns()
        scene.lab(Machines(), scene.guests("a", "b"))
        for seen in scene.seen.values():
            (told,) = (r for r in seen if r["op"] == "resume")
            assert began <= told["real_ns"] <= scene.loop.clock.now_ns()
            seeds.append(told["seed"])
    assert len(set(seeds)) == 4


def test_what_is_slower_to_come_back_is_booted_from_then_on(scene: Scene) -> None:
    came, how = scene.lab(Machines(boot_s=0.0, restore_s=0.3), scene.guests("a"))
    assert how == {"a": "kept"}
    (entry,) = scene.store.directory.iterdir()
    assert [f.name for f in entry.iterdir()] == ["kept.json"], "its memory is of no use to anybody"
    machines = Machines()
    came, how = scene.lab(machines, scene.guests("a"))
    assert came.read.keys() == {"a"} and how == {"a": "booted"} and machines.did == [("create", "a")]


def test_a_machine_of_other_make_is_another_machine(scene: Scene) -> None:
    scene.lab(Machines(), scene.guests("a"))
    (guest,) = scene.guests("a")
    assert guest.node.vm is not None
    larger = dataclasses.replace(guest.node.vm, memory_bytes=guest.node.vm.memory_bytes * 2)
    guest.node = dataclasses.replace(guest.node, vm=larger)
    assert scene.lab(Machines(), [guest])[1] == {"a": "kept"}


def test_a_snapshot_that_cannot_be_restored_is_dropped_and_the_machine_boots(scene: Scene) -> None:
    scene.lab(Machines(), scene.guests("a", "b"))
    machines = Machines()
    machines.broken = {"a"}
    came, how = scene.lab(machines, scene.guests("a", "b"))
    assert came.read.keys() == {"a", "b"} and how == {"a": "booted", "b": "restored"}
    (text,) = scene.warnings()
    assert "nodes.a: its snapshot is of no use: libvirt refuses: the save image is corrupted" in text
    assert scene.lab(Machines(), scene.guests("a", "b"))[1] == {"a": "kept", "b": "restored"}


def test_a_machine_that_cannot_be_saved_boots_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    machines = Machines()
    save = machines.save

    def failing(guest: Guest, memory: Path) -> None:
        if guest.name == "a":
            raise LabError("libvirt cannot save it: No space left on device")
        save(guest, memory)

    monkeypatch.setattr(machines, "save", failing)
    came, how = scene.lab(machines, scene.guests("a", "b"))
    assert came.read.keys() == {"a", "b"} and how == {"a": "booted", "b": "kept"}
    assert "No space left" in scene.warnings()[0]
    assert len(list(scene.store.directory.iterdir())) == 1


def test_without_room_nothing_is_kept_and_it_is_said(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "has_room", lambda *_: False)
    _, how = scene.lab(Machines(), scene.guests("a"))
    assert how == {"a": "booted"} and list(scene.store.directory.iterdir()) == []
    assert "has no room for 116 MiB" in scene.warnings()[0]


def test_a_machine_with_a_nic_of_the_host_boots(scene: Scene) -> None:
    (guest,) = scene.guests("a")
    card = dataclasses.replace(guest.node.interfaces[0], pci="0000:01:00.0")
    guest.node = dataclasses.replace(guest.node, interfaces=(card,))
    assert scene.lab(Machines(), [guest])[1] == {"a": "booted"}


def test_one_that_does_not_boot_fails_and_the_others_are_kept(scene: Scene) -> None:
    machines = Machines()
    create = machines.create

    def refusing(guest: Guest) -> str:
        if guest.name == "a":
            raise LabError("nodes.a: libvirt refuses: no")
        return create(guest)

    machines.create = refusing  # type: ignore[method-assign]
    came, how = scene.lab(machines, scene.guests("a", "b"))
    assert how == {"b": "kept"} and came.failed.keys() == {"a"} and came.read.keys() == {"b"}


@pytest.mark.parametrize("spoil", [
    lambda place: (place / "kept.json").unlink(),
    lambda place: (place / "kept.json").write_text('{"boot_ns": 5'),
    lambda place: (place / "kept.json").write_text("[]"),
    lambda place: (place / "kept.json").write_text('{"boot_ns": Infinity, "restore_ns": 1}'),
    lambda place: (place / "kept.json").write_text('{"boot_ns": 2, "restore_ns": 1, "files": 3}'),
    lambda place: (place / "kept.json").write_bytes(b"\xff"),
])  # fmt: skip
def test_an_entry_that_is_not_whole_is_none(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    """Shows that an incomplete snapshot (the lab was killed while saving, or a file lost its end) counts as
    missing.
    """
    store = Store(tmp_path)
    (store.begin("k") / "memory").write_text("m")
    assert store.find("k") is None, "not committed"
    store.commit("k", 2 * SECOND, SECOND)
    found = store.find("k")
    assert found is not None and found.faster and (found.directory / "memory").exists()
    spoil(tmp_path / "k")
    assert store.find("k") is None
    assert not (store.begin("k") / "memory").exists(), "begun anew without what was there"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda file: file.write_text("cut"), "memory has 3 bytes, and had 15"),
        (lambda file: file.write_text("another content"), "memory was changed after it was stored"),
        (lambda file: file.unlink(), "memory is gone"),
        (lambda file: (file.parent / "disk.qcow2").touch(), "disk.qcow2 was not stored with it"),
    ],
)
def test_a_snapshot_that_was_changed_is_not_restored(
    scene: Scene, spoil: Callable[[Path], None], why: str
) -> None:
    scene.lab(Machines(), scene.guests("a", "b"))
    (memory,) = [f for f in scene.store.directory.glob("*/memory") if f.read_text().endswith(" a")]
    spoil(memory)
    os.utime(memory.parent)
    machines = Machines()
    came, how = scene.lab(machines, scene.guests("a", "b"))
    assert came.read.keys() == {"a", "b"} and how == {"a": "kept", "b": "restored"}
    assert scene.warnings() == [f"nodes.a: its snapshot is of no use: its file {why}"]
    assert scene.lab(Machines(), scene.guests("a", "b"))[1] == {"a": "restored", "b": "restored"}


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda file: file.write_bytes(b""), "booted.memory has 0 bytes, and had 15"),
        (lambda file: os.utime(file, ns=(1, 1)), "booted.memory was changed after it was stored"),
        (lambda file: (file.parent / "booted.qcow2").touch(), "booted.qcow2 was not stored with it"),
    ],
)
def test_a_revert_to_a_snapshot_that_was_changed_ends_no_machine(
    tmp_path: Path, spoil: Callable[[Path], None], why: str
) -> None:
    guest, machines = guest_of(tmp_path), Machines()
    guest.storage.mkdir(exist_ok=True)
    taken = Snapshots(None, None, machines, None, None, set(), None)  # type: ignore[arg-type]
    machines._begin = lambda *_: None  # type: ignore[method-assign]
    taken._save(guest, "booted")
    spoil(guest.storage / "booted.memory")
    with pytest.raises(LabError, match="snapshot booted is of no use: its file ") as raised:
        taken.revert([guest], "booted")
    assert why in str(raised.value) and guest.domain == "domain", "it still runs"


def test_a_key_is_of_the_domain_and_of_every_file_that_it_reads(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel"
    kernel.write_text("k")
    keys = {
        key_of("<domain/>", [kernel]),
        key_of("<domain />", [kernel]),
        key_of("<domain/>", [kernel], b"seed"),
    }
    kernel.write_text("other")
    keys.add(key_of("<domain/>", [kernel]))
    assert len(keys) == 4
    assert key_of("<domain/>", [kernel]) in keys
