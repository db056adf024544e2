"""Runs a test program in a place where it may make hosts: in a lab kernel, or in namespaces of this machine.
The hosts are namespaces there, or (`machines`) have kernels of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from lab_plans import make_plan, node
from machines import KERNEL

from orchestrator.kernel.protocol import Launch
from orchestrator.kernel.uml.kernel import UmlKernel
from orchestrator.project import AGENT

BUILD = Path(__file__).parent / "kernel" / "build.sh"  # builds the kernel of hosts that have their own
ROOM_FOR = 240  # number of nodes for which the kernel gets memory
CGROUP = Path("/sys/fs/cgroup")
OWN = ("--net", "--mount", "--pid", "--cgroup", "--fork", "--kill-child", "--mount-proc")


def in_guest(script: Path, directory: Path, arguments: Sequence[str]) -> tuple[int, str]:
    """Runs the script in a new lab kernel, which has netem; returns its exit status and output."""
    plan = make_plan("guest", tuple(node("guest", n, f"n{n}") for n in range(ROOM_FOR)))
    words = [f"/host{script}", *arguments]
    kernel = UmlKernel(payload=lambda _launch, _state: words)
    launch = Launch(plan, directory / "run", directory / "state", AGENT, scenario=True)
    handle = kernel.start(launch)
    try:
        said = "\n".join(str(event.get("text", event)) for event in handle.events())
        return handle.wait(), said
    finally:
        handle.kill()


def in_namespaces(
    script: Path, directory: Path, arguments: Sequence[str], more: Mapping[str, str] = MappingProxyType({})
) -> tuple[int, str]:
    """Runs the script in namespaces on this machine's own kernel, which may lack netem; ends all its
    processes with it. Returns its exit status and output.
    """
    groups = [tree / f"spread-{directory.name}" for tree in _trees()]
    for group in groups:
        group.mkdir()
    enter = "".join(f"echo $$ > {group}/cgroup.procs; " for group in groups)
    call = ["unshare", *OWN, sys.executable, str(script), "--own", *arguments]
    try:
        done = subprocess.run(
            ["sh", "-c", f'{enter} exec "$@"', "sh", *call],
            env=os.environ | dict(more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout
    finally:
        for group in groups:
            for below in sorted((p for p in group.rglob("*") if p.is_dir()), reverse=True):
                below.rmdir()
            group.rmdir()


def over_machines(script: Path, directory: Path, arguments: Sequence[str]) -> tuple[int, str]:
    """Runs the script in namespaces that connect hosts with kernels of their own; returns its exit status and
    output.
    """
    built = subprocess.run([str(BUILD)], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return in_namespaces(script, directory, arguments, {KERNEL: built[-1]})


def _trees() -> list[Path]:
    """Returns the roots of this machine's control groups: one, or one for each controller that labs use."""
    if (CGROUP / "cgroup.controllers").exists():
        return [CGROUP]
    return [CGROUP / name for name in ("cpu", "cpuacct", "memory", "pids") if (CGROUP / name).is_dir()]


PLACES = {"kernel": in_guest, "namespaces": in_namespaces, "machines": over_machines}

if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory(prefix="vg") as place:
        status, text = PLACES[sys.argv[1]](Path(sys.argv[2]), Path(place), sys.argv[3:])
        print(text)
        sys.exit(status)
