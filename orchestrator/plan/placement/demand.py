"""Computes the resources that a node needs on its host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contract.plan import Node

from ...software.kind import Costs
from ..capacity import VM_BYTES
from ..predict import NODE_BYTES

# The share of the lab's work, in cores, of a light node that reserves no CPU; a virtual machine counts as its
# virtual CPUs. This is an assumption, since the programs' load is unknown; only the ratio of the two matters.
LIGHT_CORES = 0.05


@dataclass(frozen=True, slots=True)
class Demand:
    """The resources that parts need: reserved cores and MHz, memory in bytes, and their share of the lab's
    work in cores.
    """

    cores: float = 0.0
    mhz: float = 0.0
    memory_bytes: int = 0
    work: float = 0.0

    def __add__(self, other: Demand) -> Demand:
        return Demand(
            self.cores + other.cores,
            self.mhz + other.mhz,
            self.memory_bytes + other.memory_bytes,
            self.work + other.work,
        )


NOTHING = Demand()


def demand(node: Node, costs: Sequence[Costs], core_mhz: float | None) -> Demand:
    """Returns the resources of a node. Its work is the reserved CPU in cores, else its virtual CPUs, or 0.05
    for a light node.

    costs: the costs of its software; core_mhz: the lowest clock of the hosts, which converts reserved MHz to
    cores; None: reserved MHz do not count as work.
    """
    cores, mhz = node.cpu_reserve_cores or 0.0, node.cpu_reserve_mhz or 0.0
    memory = NODE_BYTES if node.vm is None else VM_BYTES + node.vm.memory_bytes
    reserved = cores + (mhz / core_mhz if core_mhz else 0.0)
    usual = LIGHT_CORES if node.vm is None else float(node.vm.vcpus)
    return Demand(cores, mhz, memory + sum(cost.memory_bytes for cost in costs), reserved or usual)
