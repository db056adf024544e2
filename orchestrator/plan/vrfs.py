"""Plans routing tables of their own in routers (VRF): their devices, their interfaces and their routes.

For routes and paths, each VRF of a router counts as a router of its own, whose name is `key(node, vrf)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from contract.plan import Interface, Node, Route, Step, Vrf
from contract.plan.family import EVERYWHERE, family

FIRST_TABLE = 1001  # number of a node's first VRF; the kernel's own tables are 253 to 255
# Without this last route of a table, packets that no route fits would be looked up in the main table (kernel,
# Documentation/networking/vrf.rst).
LAST_METRIC = 4278198272


def key(node: str, vrf: str) -> str:
    """Returns the name of a VRF among routers; no node has a name with `%`."""
    return f"{node}%{vrf}" if vrf else node


def parts(
    vrfs: Mapping[str, Sequence[str]], cards: Sequence[Interface]
) -> Iterator[tuple[str, list[Interface]]]:
    """Yields ("", interfaces in no VRF) of a node, and (name, interfaces) of each VRF; `vrfs` has the
    segments and links of each, as the file states them.
    """
    placed = {place for places in vrfs.values() for place in places}
    yield "", [card for card in cards if card.segment not in placed]
    for name, places in vrfs.items():
        yield name, [card for card in cards if card.segment in places]


def planned(
    node: str,
    vrfs: Mapping[str, Sequence[str]],
    cards: Sequence[Interface],
    routes: Mapping[str, tuple[Route, ...]],
) -> tuple[Vrf, ...]:
    """Returns the VRFs of a node, numbered in the file's order; `routes` by `key`."""
    found = [(name, own) for name, own in parts(vrfs, cards) if name]
    return tuple(
        Vrf(name, FIRST_TABLE + place, tuple(card.name for card in own), routes.get(key(node, name), ()))
        for place, (name, own) in enumerate(found)
    )


def device_steps(nodes: Iterable[Node]) -> Iterator[Step]:
    """Yields the step that makes the devices of a node's VRFs and places interfaces in them. Addresses follow
    later, since an interface that enters a VRF loses those of IPv6.
    """
    for node in nodes:
        lines: list[str] = []
        for vrf in node.vrfs:
            lines.append(f"link add name {vrf.name} type vrf table {vrf.table}")
            lines.append(f"link set dev {vrf.name} up")
            lines += [f"link set dev {name} master {vrf.name}" for name in vrf.interfaces]
        if lines:
            text = "".join(f"{line}\n" for line in lines)
            yield Step("ip", node.netns, text, f"routing tables of {node.name} (VRF)", node.host)


def route_lines(node: Node, lost: Iterable[str] = ()) -> list[str]:
    """Returns `ip -batch` lines that set the routes of a node's VRFs, without next hops in `lost`."""
    gone = set(lost)
    lines: list[str] = []
    for vrf in node.vrfs:
        kinds = {
            family(one) for card in node.interfaces if card.name in vrf.interfaces for one in card.addresses
        }
        lines += [
            f"route replace unreachable {EVERYWHERE[kind]} metric {LAST_METRIC} table {vrf.table}"
            for kind in sorted(kinds)
        ]
        for route in vrf.routes:
            via = [one for one in route.via if one not in gone]
            hops = f"via {via[0]}" if len(via) == 1 else " ".join(f"nexthop via {one}" for one in via)
            lines += [f"route replace {to} proto static {hops} table {vrf.table}" for to in route.to if via]
    return lines


def vrf_of(node: Node, interface: str) -> str:
    """Returns the VRF of a node's interface; "" if it is in none."""
    return next((vrf.name for vrf in node.vrfs if interface in vrf.interfaces), "")
