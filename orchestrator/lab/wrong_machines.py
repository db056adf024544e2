"""Gives a node a wrong clock or a perturbed schedule, by the lab kernel (images/kernel/node-faults.patch)."""

from __future__ import annotations

from pathlib import Path

from orchestrator.lab.errors import LabError
from orchestrator.lab.lab import Lab

CONTROL = Path("/proc/sys/kernel/lab_node")  # takes one line for one node; only a lab kernel has it


def schedule(lab: Lab, node: str, seed: int, most_ns: int) -> None:
    """Perturbs the order in which a node's programs run, for which `seed` draws everything; their threads are
    set aside for `most_ns` at most. Seed and time 0 end it. Raises LabError if the kernel refuses.
    """
    _tell(lab, node, "schedule", f"{seed} {most_ns}")


def clock(lab: Lab, node: str, offset_ns: int) -> None:
    """Sets how far the clock of a node's programs is ahead; raises LabError if the kernel refuses."""
    _tell(lab, node, "clock", str(offset_ns))


def _tell(lab: Lab, node: str, what: str, values: str) -> None:
    """Writes a line about a node. It names the node's agent, which is spared, since it measures."""
    pid = lab.pids.get(node)
    if pid is None:
        raise LabError(f"nodes.{node}: {what}: the node is not there")
    try:
        CONTROL.write_text(f"{pid} {what} {values}", encoding="ascii")
    except FileNotFoundError:
        rule = "this kernel has no wrong clocks and perturbed schedules"
        raise LabError(
            f"nodes.{node}: {what}: {rule}; build it: `vnet images build lab-kernel-faults`"
        ) from None
    except OSError as error:
        raise LabError(f"nodes.{node}: {what}: {CONTROL}: {error.strerror}") from error
