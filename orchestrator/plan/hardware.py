"""Finds a topology's interfaces that are NICs of the machine, and those that a cable joins to a segment."""

from __future__ import annotations

import dataclasses

from contract.plan import Interface

from ..topology.document import File


@dataclasses.dataclass(frozen=True)
class Hardware:
    """A node's NIC as requested, and the one that is cabled to it, if that is in the lab too."""

    nic: str
    cable: str | None = None


def nics_of(model: File) -> dict[tuple[str, str], Hardware]:
    """(node, segment) -> its NIC."""
    found = {
        (name, segment or node.segment[0]): Hardware(asked)
        for name, node in model.nodes.items()
        for segment, asked in (node.nic or {}).items()
    }
    for link in model.links.values():
        node, segment = link.between
        if link.nics is not None and node in model.nodes:
            found[node, segment] = Hardware(link.nics.a, link.nics.b)
    return found


def with_nic(card: Interface, hardware: Hardware | None) -> Interface:
    """The interface as that NIC; unchanged without one."""
    if hardware is None:
        return card
    return dataclasses.replace(card, nic=hardware.nic, cable=hardware.cable)
