"""Tests a real machine whose disk finds no space: it is paused, does not delay other nodes, and continues
once there is space.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_plans import AGENT, machine, make_plan, node, own
from lab_running import needs_vm, until
from vm_running import Start, up
from vm_talking import execute

from orchestrator.images import cache, locate
from orchestrator.lab.vm import storage

pytestmark = [needs_vm, pytest.mark.root, pytest.mark.slow, pytest.mark.sweep]
FILL = "modprobe virtio_blk; dd if=/dev/zero of=/dev/vda bs=1M count=200 >/dev/null 2>&1 &"


@pytest.fixture
def image() -> Iterator[str]:
    """Yields the name of an image: `builtin` with a disk, so that no other image must be built."""
    built = locate("builtin", AGENT)
    assert built.kernel is not None and built.initrd is not None
    name = "full"
    with cache.publish(name, f"{os.getpid():016x}") as part:
        shutil.copy(built.kernel, part / "kernel")
        shutil.copy(built.initrd, part / "initrd")
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", part / "disk.qcow2", "400M"], check=True)
        about = json.loads((built.directory / "image.json").read_text())
        about |= {"name": name, "kind": "disk", "disk": "disk.qcow2"}
        (part / "image.json").write_text(json.dumps(about))
    yield name
    for directory in cache.directories(name):
        cache.remove(directory)


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yields a file system of 60 MB for the disks of machines."""
    place = Path(tempfile.mkdtemp(prefix="vd"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m,mode=711", "tmpfs", place], check=True)
    monkeypatch.setenv(storage.VARIABLE, str(place))
    yield place
    subprocess.run(["umount", "-l", place], check=True)
    place.rmdir()


def resize(place: Path, megabytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={megabytes}m", place], check=True)


def test_a_machine_without_room_is_paused_and_goes_on_with_some(start: Start, image: str, room: Path) -> None:
    lab = own("vmfull")
    plan = make_plan(lab, (machine(node(lab, 0, "guest"), image), node(lab, 1, "light")))
    running = start(plan)
    control = up(running)
    disks = storage.of_lab(running.state_dir)
    assert (disks / "guest" / "disk.qcow2").exists() and disks.parent == room

    assert execute(control, "guest", "sh", "-c", FILL)[0] == 0
    running.await_event("warning", code="silent", timeout=120)
    state = control.call("inspect")["nodes"]["guest"]["state"]
    assert state.startswith(f"paused: no space left for its disk {disks}/guest/disk.qcow2"), state
    assert execute(control, "light", "true")[0] == 0
    refused = control.call("exec", node="guest", argv=["true"], env={}, tty=None)
    assert not refused["ok"] and "nodes.guest: exec: it is paused: no space" in refused["error"], refused
    refused = control.call("snapshot", nodes=["guest"], name="one")
    assert not refused["ok"] and "it is paused" in refused["error"], refused

    resize(room, 400)
    until(60, "it goes on", lambda: control.call("inspect")["nodes"]["guest"]["state"] == "running")
    until(120, "its disk is written", lambda: execute(control, "guest", "pidof", "dd")[0] != 0)

    # a snapshot that does not fit is refused, and the machine still answers
    used = sum(f.stat().st_blocks * 512 for f in disks.rglob("*") if f.is_file()) >> 20
    resize(room, used + 20)
    refused = control.call("snapshot", nodes=["guest"], name="one")
    assert not refused["ok"] and "take up to" in refused["error"], refused
    assert execute(control, "guest", "true")[0] == 0

    assert control.call("down")["ok"] and running.finish() == 0
    warnings = [w["text"] for w in running.manifest["warnings"] if w["code"] == "silent"]
    assert warnings and "QEMU paused it: no space left" in warnings[0], running.manifest["warnings"]
    assert running.leftovers() == [] and not disks.exists()
