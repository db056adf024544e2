"""Tests labs with real machines that continue from the snapshots of an earlier lab."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_plans import MS, SECOND, machine, make_plan, node, own
from lab_running import Control, Running, needs_vm, vm_missing
from vm_talking import SERVING, execute

pytestmark = [needs_vm, pytest.mark.root, pytest.mark.slow]


class Labs:
    """Labs of one name, one after the other, like the cells of a campaign."""

    def __init__(self) -> None:
        # The path is short, because QEMU's sockets are deep below it.
        self.top = Path(tempfile.mkdtemp(prefix="vs"))
        self.top.chmod(0o711)  # lets QEMU's account enter the directory
        self.store = self.top / "snapshots"
        self.store.mkdir()
        self.made: list[Running] = []

    def __call__(self, *names: str, image: str = "builtin", store: bool = True) -> tuple[Running, Control]:
        nodes = tuple(machine(node(own("vmsnap"), n, name), image) for n, name in enumerate(names))
        plan = make_plan(own("vmsnap"), (*nodes, node(own("vmsnap"), len(names), "light")), ramp_ns=100 * MS)
        directory = self.top / str(len(self.made))
        directory.mkdir()
        options = ("--snapshots", str(self.store)) if store else ()
        self.made.append(Running(plan, directory, *options, driver="vm", state_root=self.top / "state"))
        self.made[-1].await_event("phase", timeout=280, text=SERVING)
        return self.made[-1], Control(self.made[-1])

    def close(self) -> None:
        for running in self.made:
            running.close()
        shutil.rmtree(self.top)


@pytest.fixture
def labs() -> Iterator[Labs]:
    made = Labs()
    yield made
    made.close()


def end(running: Running, control: Control) -> dict[str, Any]:
    """Takes the lab down, asserts that nothing is left, and returns its last manifest."""
    assert control.call("down")["ok"]
    assert running.finish() == 0
    assert running.leftovers() == []
    return running.manifest


def out(control: Control, name: str, command: str) -> str:
    status, text = execute(control, name, "/bin/sh", "-c", command)
    assert status == 0, text
    return text


def look(control: Control, name: str) -> dict[str, str]:
    """Returns the properties of a machine that must be the same in every lab, and those that must differ."""
    return {
        "host": out(control, name, "hostname").strip(),
        "files": out(control, name, "find /run/vnet /tmp | sort"),
        "boot": out(control, name, "dmesg | head -n 20"),  # lines with times of this boot only
        "random": out(control, name, "cat /proc/sys/kernel/random/uuid").strip(),
        "late_s": str(abs(float(out(control, name, "date +%s")) - time.time())),
        "console": out(control, name, "echo said >/dev/console; echo done"),
    }


def test_machines_go_on_from_where_an_earlier_lab_kept_them(labs: Labs) -> None:
    seen = []
    for how in ("kept", "restored", "restored"):
        running, control = labs("a", "b")
        began = time.monotonic()
        looks = {name: look(control, name) for name in ("a", "b")}
        status, said = execute(control, "light", "ping", "-c", "3", "-i", "0.3", "-W", "3", "10.9.0.1")
        assert status == 0, said
        assert execute(control, "a", "touch", "/run/vnet/later", "/tmp/later")[0] == 0
        # if the clock stood still, it would be late after the next restore
        time.sleep(max(0.0, began + 2 - time.monotonic()))
        manifest = end(running, control)
        assert manifest["starts"]["nodes"] == {"a": how, "b": how}, manifest["starts"]
        assert not [w for w in manifest["warnings"] if w["code"] == "snapshots"], manifest["warnings"]
        for of in looks.values():
            assert float(of["late_s"]) < 2, "its clock is the lab's, not the snapshot's"
        assert "said" in (running.run_dir / "raw/logs/a.console.log").read_text(), "each run has its console"
        seen.append(looks)
    assert len({s[n]["random"] for s in seen for n in ("a", "b")}) == 6, "nobody draws what another drew"
    for name in ("a", "b"):
        for fact in ("host", "files", "boot"):
            assert len({s[name][fact] for s in seen}) == 1, (name, fact, seen)


@pytest.mark.skipif(vm_missing("debian") is not None, reason=str(vm_missing("debian")))
def test_a_disk_goes_on_as_it_was_when_its_machine_was_kept(labs: Labs) -> None:
    for how in ("kept", "restored"):
        running, control = labs("a", image="debian")
        assert execute(control, "a", "ls", "/later")[0] != 0, "what an earlier lab wrote is not there"
        assert execute(control, "a", "sh", "-c", "echo later > /later; sync")[0] == 0
        assert abs(float(out(control, "a", "date +%s")) - time.time()) < 5
        manifest = end(running, control)
        assert manifest["starts"]["nodes"] == {"a": how}, manifest["starts"]
    assert manifest["starts"]["restore_ns"] < 60 * SECOND
