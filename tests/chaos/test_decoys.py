"""Tests that objects with names or properties similar to a lab's stay unchanged while labs start, are killed
and end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import ROOT, WITHIN_S, Case

from orchestrator.lab import cgroup

# number of rounds of two labs: one goes up and down, one goes up and is killed
LABS = int(os.environ.get("VNET_DECOY_LABS", "1"))
TOPOLOGY = """\
name: LAB
segments: {lan: {subnet: 10.79.0.0/24}}
nodes:
  a: {segment: lan}
  b: {segment: lan}
"""
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="plants namespaces, bridges and control groups: needs root"),
    pytest.mark.skipif(not (ROOT / "target/release/vnet-agent").exists(), reason="no agent (make setup)"),
]


def sh(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


QEMU = shutil.which("qemu-system-x86_64")
GROUP_FILES = ("cgroup.procs", "memory.limit_in_bytes", "memory.max", "pids.max")
LOOKS = {
    "links, with what they counted": ("ip", "-n", "NS", "-s", "-s", "-o", "-d", "link"),
    "qdiscs, with what they counted": ("tc", "-n", "NS", "-s", "qdisc"),
    "addresses": ("ip", "-n", "NS", "-o", "address"),
}


class Decoys:
    """Makes namespaces, devices, qdiscs, control groups, files, processes and a machine with names that
    differ from the lab's in a letter, or of nodes that it lacks, and without vNET's marks.
    """

    def __init__(self, lab: str, folder: Path) -> None:
        self.namespaces: tuple[str, ...] = (
            f"vnet-{lab}x", f"vnet-{lab}x.a", f"vnet{lab}", f"xvnet-{lab}.a", f"vnet-{lab}.no-node",
        )  # fmt: skip
        self.groups = [
            root / "vnet" / f"{lab}x" / "a" for root in cgroup.this_machine().roots(("memory", "pids"))
        ]
        self.state = folder / "s" / f"{lab}x"
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"import time; time.sleep(100000)  # vnet-agent launch {lab}"]
        )
        self.machine = self._machine(lab)
        self.made: list[str] = []

    @staticmethod
    def _machine(lab: str) -> subprocess.Popen[bytes] | None:
        """Starts QEMU with a name similar to that of the lab's domain; None without QEMU."""
        argv = ["-display", "none", "-S", "-name", f"guest=vnet-{lab}x.a", "-m", "16"]
        return subprocess.Popen([QEMU, *argv]) if QEMU else None

    def plant(self) -> None:
        for namespace in self.namespaces:
            sh("ip", "netns", "add", namespace)
            self.made.append(namespace)
            sh("ip", "-n", namespace, "link", "add", "br-lan", "type", "bridge")
            sh("ip", "-n", namespace, "link", "add", "eth0", "type", "veth", "peer", "name", "eth1")
            sh("ip", "-n", namespace, "address", "add", "10.79.1.1/24", "dev", "eth0")
            queue = ("qdisc", "add", "dev", "eth0", "root", "handle", "1:", "pfifo", "limit", "7")
            sh("tc", "-n", namespace, *queue)
            # the kernel sends packets of its own later only with IPv6, which is off
            for device in ("lo", "eth0", "eth1"):
                sh("ip", "-n", namespace, "link", "set", device, "addrgenmode", "none", "up")
            sh("ip", "netns", "exec", namespace, "ping", "-c", "1", "-q", "10.79.1.1")
        self.state.mkdir(parents=True, exist_ok=True)
        (self.state / "lab.json").write_text("{}")
        (self.state / "thesis.txt").write_text("years of work")
        for group in self.groups:
            group.mkdir(parents=True)
            (group / "cgroup.procs").write_text(str(self.process.pid))
        self.before = self.now()

    def now(self) -> dict[str, str]:
        """Returns the whole visible state of the decoys."""
        found = {
            f"{ns} {what}": sh(*(ns if word == "NS" else word for word in argv))
            for ns in self.namespaces
            for what, argv in LOOKS.items()
        }
        for group in self.groups:
            found |= {str(group / f): (group / f).read_text() for f in GROUP_FILES if (group / f).exists()}
        for path in (self.state, *sorted(self.state.rglob("*"))):
            about = path.stat()
            facts = (about.st_ino, about.st_mode, about.st_uid, about.st_size, about.st_mtime_ns)
            found[str(path)] = f"{facts} {path.read_bytes() if path.is_file() else ''}"
        for process in filter(None, (self.process, self.machine)):
            found[str(process.args)] = repr(process.poll())
        return found

    def close(self) -> None:
        for process in filter(None, (self.process, self.machine)):
            process.kill()
            process.wait()
        for namespace in self.made:
            sh("ip", "netns", "del", namespace)
        for group in filter(Path.exists, self.groups):
            group.rmdir()
            group.parent.rmdir()
            cgroup.remove_if_empty(group.parent.parent)


@pytest.fixture
def case() -> Iterator[Case]:
    folder = Path(tempfile.mkdtemp(prefix="vd"))
    yield Case(folder, WITHIN_S if LABS == 1 else None)  # a case over hours has no time limit
    shutil.rmtree(folder)


def test_who_has_exactly_our_names_without_our_marks_is_let_be(case: Case) -> None:
    """Shows that a lab is refused, and everything stays as it was, if others own a namespace, a control group
    or a directory with exactly the lab's names but without vNET's mark.
    """
    lab = f"decoy{os.getpid()}"
    (case.base / "lab.yaml").write_text(TOPOLOGY.replace("LAB", lab))
    kept = case.base / "s" / lab / "thesis.txt"
    for exact in ("namespace", "control group", "directory"):
        decoys = Decoys(lab, case.base)
        decoys.namespaces = {"namespace": (f"vnet-{lab}", f"vnet-{lab}.b")}.get(exact, ())
        decoys.groups = [
            root / "vnet" / lab / "b"
            for root in cgroup.this_machine().roots(("memory", "pids"))
            if exact == "control group"
        ]
        if exact == "directory":
            kept.parent.mkdir(parents=True)
            kept.write_text("years of work")
        try:
            decoys.plant()
            status, said = case.vnet("up", "lab.yaml", "--kernel", "host", "--results", "out")
            assert status != 0 and "name the lab otherwise" in said, (exact, said)
            assert lab not in case.vnet("list")[1], exact
            case.vnet("down", lab)
            assert decoys.now() == decoys.before, exact
            assert exact != "directory" or kept.read_text() == "years of work"
        finally:
            decoys.close()


def test_look_alikes_stay_as_they_are(case: Case) -> None:
    """Shows that decoys stay unchanged over many labs. Under `make chaos`, a lab that a busy machine refuses
    is counted and skipped.
    """
    lab = f"decoy{os.getpid()}"
    (case.base / "lab.yaml").write_text(TOPOLOGY.replace("LAB", lab))
    decoys, came = Decoys(lab, case.base), Counter[str]()
    try:
        decoys.plant()
        for _ in range(LABS):
            for killed in (False, True):
                status, said = case.vnet("up", "lab.yaml", "--kernel", "host", "--results", "out")
                assert status == 0 or LABS > 1, said
                came[
                    "killed" if status == 0 and killed else "down" if status == 0 else f"not up: {said}"
                ] += 1
                for pid in case.left() if killed else ():
                    os.kill(pid, 9)
                status, said = case.vnet("down", lab)
                assert status == 0 or "nothing of that name" in said, said
                assert decoys.now() == decoys.before
            shutil.rmtree(case.base / "out", ignore_errors=True)
            print(f"beside {len(decoys.before)} things that stay as they were: {dict(came)}", flush=True)
        assert not case.left()
    finally:
        case.vnet("down", lab)
        decoys.close()
