"""Finds the interfaces of a topology that are NICs of the machine, and the NICs that cables join to them."""

from __future__ import annotations

import dataclasses

from contract.plan import Interface

from ..topology.document import File


@dataclasses.dataclass(frozen=True)
class Hardware:
    """A node's NIC as the file requests it, and the NIC at the other end of its cable; None if that NIC is
    not in the lab.
    """

    nic: str
    cable: str | None = None


def nics_of(model: File) -> dict[tuple[str, str], Hardware]:
    """Returns the NIC of each node's interface that has one, by (node, segment), from the nodes' `nic` and
    the links' `nics`.
    """
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
    """Returns the interface with this NIC and cable; unchanged if `hardware` is None."""
    if hardware is None:
        return card
    return dataclasses.replace(card, nic=hardware.nic, cable=hardware.cable)
