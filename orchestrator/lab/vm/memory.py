"""Checks the free memory before machines are created, so that the kernel does not run out of it later."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Node
from orchestrator.lab.errors import LabError
from orchestrator.lab.meminfo import available_bytes
from orchestrator.plan.capacity import MEMORY_SHARE, VM_BYTES


def insist(nodes: Sequence[Node], meminfo: str | None = None) -> None:
    """Raises LabError if the machines among `nodes` need more memory, by the planner's figures, than is
    free now. The planner checks a lab before it is built; other programs and added machines may use memory
    later.
    """
    machines = [node for node in nodes if node.vm is not None]
    needed = sum(VM_BYTES + node.vm.memory_bytes for node in machines if node.vm is not None)
    free = available_bytes(meminfo)
    if free is not None and needed > MEMORY_SHARE * free:
        raise LabError(
            f"nodes.{machines[0].name}: {len(machines)} virtual machine(s) need about {needed / 1e6:.0f} MB, "
            f"{free / 1e6:.0f} MB are free; use fewer, less `memory`, or free memory"
        )
