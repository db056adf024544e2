"""Tests the rights of a guest that took over its QEMU: QEMU's account, and the result of each escape attempt
as that account.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab_running import Running

from orchestrator.lab.vm import account, storage

# The file is read here, because QEMU's account may not be able to read the checkout.
INSIDE = Path(__file__).with_name("qemu_inside.py").read_text()


@contextmanager
def neighbour(running: Running) -> Iterator[dict[str, Any]]:
    """Yields another lab's directory with a disk, and a process that stands for its QEMU."""
    other = running.state_root / "other"
    theirs = account.of_lab(other)
    (other / "vm" / "a").mkdir(parents=True)
    for directory in (other, other / "vm", other / "vm" / "a"):
        theirs.enters(directory)
    for file in (other / "lab.json", other / "vm" / "a" / "disk.qcow2"):
        file.write_text("secret")
    theirs.owns(other / "vm" / "a" / "disk.qcow2")
    sibling = subprocess.Popen(["sleep", "1000"], user=theirs.user, group=theirs.group, extra_groups=[])
    try:
        yield {"other": str(other), "sibling": sibling.pid, "group": theirs.group}
    finally:
        sibling.kill()
        sibling.wait()


def got_out(running: Running, pid: int) -> list[str]:
    """Returns the names of the escape attempts that succeeded, with the account and namespaces of the QEMU
    that has that pid.
    """
    mine = account.of_lab(running.state_dir)
    images = [str(p) for p in (running.state_dir / "images").rglob("*") if p.is_file()]
    assert images, "the images of a lab are mounted below its state"
    told: dict[str, Any] = {
        "state": str(running.state_dir), "home": str(Path.home()), "images": images,
        "run_dir": str(running.run_dir), "lab": running.process.pid,
    }  # fmt: skip
    groups = ",".join(map(str, (*mine.groups, mine.group)))
    become = ["setpriv", f"--reuid={mine.user}", f"--regid={mine.group}", f"--groups={groups}",
              "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]  # fmt: skip
    with neighbour(running) as more:
        argv = ["nsenter", f"--target={pid}", "--mount", "--net", *become,
                "/usr/bin/python3", "-S", "-c", INSIDE, json.dumps(told | more)]  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["tried"] >= 25
    through: list[str] = found["through"]
    return through


def is_nobody(running: Running, pid: int) -> bool:
    """Asserts that QEMU's process has the lab's account, no capabilities and a seccomp filter, and that its
    files are closed to others.
    """
    mine = account.of_lab(running.state_dir)
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
    )
    assert status["Uid"].split() == [str(mine.user)] * 4 and status["Gid"].split() == [str(mine.group)] * 4
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0 and status["Seccomp"].strip() == "2"
    disks = storage.of_lab(running.state_dir)
    for path in (running.state_dir, *(running.state_dir / "vm").rglob("*"), disks, *disks.rglob("*")):
        if path.is_dir():
            assert path.stat().st_mode & 0o777 == 0o710 and path.stat().st_gid == mine.group, path
        elif path.is_socket() or path.suffix in (".qcow2", ".img", ".memory"):
            assert path.stat().st_mode & 0o077 == 0, path
    return True
