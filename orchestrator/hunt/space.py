"""The faults of a hunt: those of the file, or all kinds on all programs and links of it."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.hunt.model import Data
from orchestrator.software.registry import kind_of
from orchestrator.topology import Topology

BRIEF, OUTAGE, FROZEN, FULL = "0.1..5 s", "0.1..30 s", "10 ms..10 s", "1..20 s"
IMPAIRED: Data = {"delay": "0..2 s", "loss": "0..40 %", "reorder": "0..10 %", "duplicate": "0..5 %"}


def faults(topology: Topology) -> list[Data]:
    """Returns the kinds of faults of a checked file: its list, or the default ones in a fixed order."""
    hunt = topology.model.hunt
    if hunt is not None and hunt.faults is not None:
        return [dict(fault) for fault in hunt.faults]
    return list(_everything(topology))


def _everything(topology: Topology) -> Iterator[Data]:
    """Yields each kind of fault on each node with programs, and on each link of the file."""
    for node, machine in topology.names.nodes.items():
        programs = [name for name, one in machine.software.items() if not kind_of(one).in_agent]
        for name in programs:
            yield {"kill": node, "software": name, "for": BRIEF}
            yield {"restart": node, "software": name}
            yield {"freeze": node, "software": name, "for": FROZEN}
        if programs and machine.kind == "light":
            yield {"disk-full": node, "for": FULL}
        if machine.segment:
            yield {"partition": node, "for": OUTAGE}
    for link in topology.model.links:
        yield {"link-down": link, "for": OUTAGE}
        yield {"impair": link, "both": dict(IMPAIRED), "for": "1..20 s"}
