"""Refuses a file that cannot be hunted, and lists the faults that a hunt of the file may draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.hunt.model import Data
from orchestrator.kernel.virtual.kernel import WITH_FAULTS, VirtualKernel
from orchestrator.language.problem import TopologyError
from orchestrator.language.ranges import range_of
from orchestrator.run.prepare import Request, prepare
from orchestrator.software.registry import kind_of
from orchestrator.topology import Topology, load
from orchestrator.topology.checks.hunt import everywhere
from orchestrator.topology.checks.timeline import accounts

# The kinds of faults for a file that names none.
BRIEF, OUTAGE, FROZEN, FULL, SKEW = "0.1..5 s", "0.1..30 s", "10 ms..10 s", "1..20 s", "-60..60 s"
OF_A_KERNEL = frozenset(
    {"schedule", "clock"}
)  # kinds that need the kernel of `vnet images build lab-kernel-faults`
IMPAIRED: Data = {"delay": "0..2 s", "loss": "0..40 %", "reorder": "0..10 %", "duplicate": "0..5 %"}


@dataclass(frozen=True)
class Settings:
    """Options of a hunt. trials, budget_s: replace the file's limits. guided: whether earlier trials guide
    the draw; if not, all trials are random.
    """

    file: Path
    parameters: Mapping[str, str]
    directory: Path
    seed: int | None = None
    workers: int = 1
    kernel: str = "auto"
    trials: int | None = None
    budget_s: float | None = None
    also_real: int = 0
    guided: bool = True


def checked(settings: Settings) -> Topology:
    """Loads the file and refuses files that cannot be hunted: without an expectation, with a value of `vary`
    that the parameter does not take, or with a lab that virtual time cannot carry.
    """
    topology = load(settings.file, settings.parameters)
    wrong = topology.document.problem
    if not topology.model.expect:
        rule = "states no expectation, and nothing could fail"
        raise TopologyError([wrong(("expect",), "", rule, "write `expect: [{delivered: exactly-once}]`")])
    vary = topology.model.hunt.vary if topology.model.hunt else {}
    for name in vary:
        if name in settings.parameters:
            rule = "is varied, and -p sets it too"
            raise TopologyError([wrong(("hunt", "vary", name), "", rule, "leave -p out")])
    for name, values in vary.items():
        for value in ends(values):
            load(settings.file, {**settings.parameters, name: value})
    named = topology.model.hunt.faults if topology.model.hunt else None
    for index, fault in enumerate(named or ()):
        if not OF_A_KERNEL.isdisjoint(fault) and VirtualKernel().with_faults is None:
            place, rule = ("hunt", "faults", index), "needs a kernel that is not built"
            raise TopologyError([wrong(place, "", rule, WITH_FAULTS)])
    if not faults(topology):
        rule = "has no program, link or segment that could fail"
        raise TopologyError([wrong(("nodes",), "", rule, "name `faults:` in `hunt:`")])
    prepare(
        Request(settings.file, settings.parameters, kernel=settings.kernel, time="virtual"), Path(), topology
    )
    return topology


def ends(values: Any) -> list[Any]:
    """Returns the values of `vary` that must be checked: all values of a list, and the two ends of a range;
    no values otherwise.
    """
    if isinstance(values, list):
        return values
    found = range_of(values)
    return [found.at(0.0), found.at(1.0)] if found else []


def faults(topology: Topology) -> list[Data]:
    """Returns the kinds of faults of a checked file: those that it lists, or the default ones in a fixed
    order. On a machine without the kernel for them, the default leaves out OF_A_KERNEL.
    """
    hunt = topology.model.hunt
    if hunt is not None and hunt.faults is not None:
        return [everywhere(fault, topology.names) for fault in hunt.faults]
    left_out = OF_A_KERNEL if VirtualKernel().with_faults is None else frozenset[str]()
    return [fault for fault in _everything(topology) if left_out.isdisjoint(fault)]


def _everything(topology: Topology) -> Iterator[Data]:
    """Yields each kind of fault for each node with programs and for each link of the file."""
    for node, machine in topology.names.nodes.items():
        programs = [name for name, one in machine.software.items() if not kind_of(one).in_agent]
        for name in programs:
            yield {"kill": node, "software": name, "for": BRIEF}
            yield {"restart": node, "software": name}
            yield {"freeze": node, "software": name, "for": FROZEN}
        if programs and machine.kind == "light":
            yield {"disk-full": node, "for": FULL}
            yield {"schedule": node, "for": OUTAGE}
        if programs and machine.kind == "light" and not any(map(accounts, machine.software.values())):
            yield {"clock": node, "offset": SKEW, "for": OUTAGE}
        if machine.segment:
            yield {"partition": node, "for": OUTAGE}
    for link in topology.model.links:
        yield {"link-down": link, "for": OUTAGE}
        yield {"impair": link, "both": dict(IMPAIRED), "for": "1..20 s"}
