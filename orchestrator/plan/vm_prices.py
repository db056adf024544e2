"""Predicts the memory and CPU that virtual machines will use, from measurements, in addition to what the
planner reserves for them. Only built-in images were measured; for machines with other images nothing is
predicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contract.plan import Node, Prediction


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of one idle, emulated machine. `boot_core_s`: CPU seconds from its creation to its agent's
    first answer.
    """

    memory_bytes: int  # PSS: memory that several machines share is counted once
    boot_core_s: float
    idle_share: float  # share of a core


# Measured by bench/vm.py on two shared cores. 40 machines of `builtin-tiny` came up in 37 s, 1.19 times their
# boot CPU divided by the cores; 10 of `builtin` came up in 14.8 s, which bounds their CPU from above. Idle
# CPU is the highest value of libvirt's counters.
PRICES = {
    "builtin-tiny": Price(71_000_000, 1.55, 0.0042),
    "builtin": Price(146_000_000, 2.96, 0.0042),
}


def predictions(nodes: Sequence[Node]) -> Iterator[Prediction]:
    """Yields the memory, boot CPU and idle CPU, each added up, of the VM nodes whose images were measured;
    their scope is "3 of 5 machines". Yields nothing without such nodes.
    """
    machines = [node.vm for node in nodes if node.vm is not None]
    prices = [PRICES[vm.image] for vm in machines if vm.image in PRICES]
    if not prices:
        return
    scope = f"{len(prices)} of {len(machines)} machines"
    yield Prediction("memory as measured", scope, float(sum(p.memory_bytes for p in prices)), "B")
    yield Prediction("boot CPU, emulated", scope, sum(p.boot_core_s for p in prices), "core-seconds")
    yield Prediction("idle CPU, emulated", scope, 100 * sum(p.idle_share for p in prices), "% of a core")
