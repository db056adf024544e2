"""Finds in the plan the link directions that leave and enter the interfaces of light nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from capture.conservation.counters import light_nodes
from contract.plan import WAYS, Plan

PORTS = {"node": pl.String, "device": pl.String, "link": pl.String, "direction": pl.String, "way": pl.String}


@dataclass(frozen=True)
class Ports:
    """The interfaces of light nodes and the link directions at them.

    rows: node, device, link, direction and way ("tx": the direction leaves the node, "rx": it enters).
    devices: for each node, the segment of each of its Ethernet interfaces (without the tag of a VLAN).
    """

    rows: pl.DataFrame
    devices: dict[str, dict[str, str]]

    def covered(self, node: str) -> set[str]:
        """Returns the node's interfaces at which a link direction begins or ends."""
        return {device for device, _ in self._links.get(node, ())}

    def way_into(self, node: str, segment: str) -> tuple[str, str] | None:
        """Returns the link and direction by which frames of the segment reach the node; None if the node
        has no interface or several there, or its interface has no counted link.
        """
        there = [device for device, place in self.devices[node].items() if place == segment]
        into = [found for device, found in self._links.get(node, ()) if device in there and found is not None]
        return into[0] if len(there) == 1 and len(into) == 1 else None

    @cached_property
    def _links(self) -> dict[str, list[tuple[str, tuple[str, str] | None]]]:
        """For each node its interfaces, each with the link and direction that enter it, or None for one that
        leaves it.
        """
        found: dict[str, list[tuple[str, tuple[str, str] | None]]] = {}
        for node, device, link, direction, way in self.rows.iter_rows():
            found.setdefault(node, []).append((device, (link, direction) if way == "rx" else None))
        return found


def ports(plan: Plan) -> Ports:
    """Returns the interfaces of all light nodes and the link directions at them; leaves out half-duplex links
    and media, whose ends share one counter.
    """
    owners = {node.netns: node.name for node in light_nodes(plan)}
    rows = []
    for link in plan.links:
        for direction in WAYS:
            d = link.way(direction)
            if d.shared or link.kind == "medium":
                continue
            ends = (("tx", d.netns, d.device), ("rx", d.far_netns, d.far_device))
            rows += [
                (owners[netns], device, link.name, direction, way)
                for way, netns, device in ends if netns in owners
            ]  # fmt: skip
    devices = {
        node.name: {i.name.partition(".")[0]: i.segment for i in node.interfaces}
        for node in light_nodes(plan)
    }
    return Ports(pl.DataFrame(rows, schema=PORTS, orient="row"), devices)
