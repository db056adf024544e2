"""What looks like a lab's but is none: labs come, are killed and go, and it stays as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import ROOT, Case

from orchestrator.lab import cgroup

LABS = int(os.environ.get("VNET_DECOY_LABS", "1"))  # rounds of two: up and down, up and killed
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


class Decoys:
    """Namespaces, devices, qdiscs, control groups, files, a process: named as ours but for a letter."""

    def __init__(self, lab: str, folder: Path) -> None:
        self.namespaces = (f"vnet-{lab}x", f"vnet-{lab}x.a", f"vnet{lab}", f"xvnet-{lab}.a")
        self.groups = [
            root / "vnet" / f"{lab}x" / "a" for root in cgroup.this_machine().roots(("memory", "pids"))
        ]
        self.state = folder / "s" / f"{lab}x"
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"import time; time.sleep(1000)  # vnet-agent launch {lab}"]
        )
        self.made: list[str] = []

    def plant(self) -> None:
        for namespace in self.namespaces:
            sh("ip", "netns", "add", namespace)
            self.made.append(namespace)
            sh("ip", "-n", namespace, "link", "add", "br-lan", "type", "bridge")
            sh("ip", "-n", namespace, "link", "add", "eth0", "type", "veth", "peer", "name", "eth1")
            sh(
                "tc",
                "-n",
                namespace,
                "qdisc",
                "add",
                "dev",
                "eth0",
                "root",
                "handle",
                "1:",
                "pfifo",
                "limit",
                "7",
            )
        self.state.mkdir(parents=True, exist_ok=True)
        (self.state / "lab.json").write_text("{}")
        for group in self.groups:
            group.mkdir(parents=True)
            (group / "cgroup.procs").write_text(str(self.process.pid))
        self.before = self.now()

    def now(self) -> dict[str, str]:
        """Everything of them that can be seen."""
        found = {
            f"{ns} {what}": sh(*argv)
            for ns in self.namespaces
            for what, argv in (
                ("links", ("ip", "-n", ns, "-o", "link")),
                ("qdiscs", ("tc", "-n", ns, "qdisc")),
            )
        }
        found |= {str(g): (g / "cgroup.procs").read_text() for g in self.groups}
        found["state"] = repr(sorted(self.state.iterdir()))
        found["process"] = repr(self.process.poll())
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for namespace in self.made:
            sh("ip", "netns", "del", namespace)
        for group in filter(Path.exists, self.groups):
            group.rmdir()
            group.parent.rmdir()
            cgroup.remove_if_empty(group.parent.parent)


@pytest.fixture
def case() -> Iterator[Case]:
    folder = Path(tempfile.mkdtemp(prefix="vd"))
    yield Case(folder)
    shutil.rmtree(folder)


def test_who_has_exactly_our_names_without_our_marks_is_let_be(case: Case) -> None:
    """A namespace, a control group and a directory that a lab of this name would have, made by somebody
    else: the lab is refused, `down` takes nothing, and all is as it was.
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
            status, said = case.vnet("up", "lab.yaml", "--kernel", "host", "--out", "out")
            assert status != 0 and "name the lab otherwise" in said, (exact, said)
            assert lab not in case.vnet("list")[1], exact
            case.vnet("down", lab)
            assert decoys.now() == decoys.before, exact
            assert exact != "directory" or kept.read_text() == "years of work"
        finally:
            decoys.close()


def test_look_alikes_stay_as_they_are(case: Case) -> None:
    lab = f"decoy{os.getpid()}"
    (case.base / "lab.yaml").write_text(TOPOLOGY.replace("LAB", lab))
    decoys = Decoys(lab, case.base)
    try:
        decoys.plant()
        for _ in range(LABS):
            for killed in (False, True):
                status, said = case.vnet("up", "lab.yaml", "--kernel", "host", "--out", "out")
                assert status == 0, said
                for pid in case.left() if killed else ():
                    os.kill(pid, 9)
                status, said = case.vnet("down", lab)
                assert status == 0, said
                assert decoys.now() == decoys.before
        assert not case.left()
    finally:
        case.vnet("down", lab)
        decoys.close()
