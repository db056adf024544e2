"""Compares the plan with the values that the kernel and the agents report; returns the differences and
changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from contract.plan import Impairment, Interface, Node, Plan, Route
from orchestrator import queueing
from orchestrator.lab.errors import LabError

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting whose value differs: its place, the requested value and the value read back."""

    place: str
    requested: object
    read: object

    def __str__(self) -> str:
        return f"{self.place}: requested {self.requested}, read back {self.read}"


def insist(differences: Sequence[Difference]) -> None:
    """Raises LabError with the first ten differences and the number of the others, since an experiment with a
    setting that did not apply has failed; does nothing if there are no differences.
    """
    if differences:
        shown = "; ".join(str(d) for d in differences[:10])
        more = f"; and {len(differences) - 10} more" if len(differences) > 10 else ""
        raise LabError(f"the network is not as planned: {shown}{more}")


def core_devices(plan: Plan, entries: Iterable[Entry]) -> list[Difference]:
    """Compares bridges and ports of the core namespace with `ip -j -d link`. They must be present and up,
    with the planned MTU and, for a port, the planned bridge. In a multi-host lab, a bridge is compared on
    each host that has it.
    """
    entries = list(entries)
    by_name = {e["ifname"]: e for e in entries}
    bridges = {s.name: s.bridge for s in plan.segments}
    found: list[Difference] = []
    for segment in plan.segments:
        place = f"segments.{segment.name}.{segment.bridge}"
        # the bridge of the segment exists on each host
        there: list[Entry | None] = [e for e in entries if e["ifname"] == segment.bridge]
        for entry in there or [None]:
            found += _device(place, entry, segment.mtu, None)
    for node in plan.nodes:
        for interface in node.interfaces:
            if not interface.port:
                continue  # the device's other end is outside the namespace; the node's agent reads it back
            place = f"nodes.{node.name}.{interface.port}"
            bridge = interface.bridge or bridges[interface.segment]
            found += _device(place, by_name.get(interface.port), interface.mtu, bridge)
    return found


def tunnels(plan: Plan, entries: Iterable[Entry]) -> list[Difference]:
    """Compares the tunnels' devices on each of their hosts with `ip` entries that name their host. They must
    be present and up, with the planned MTU and bridge.
    """
    by_name = {(e.get("host"), e["ifname"]): e for e in entries}
    return [
        difference
        for tunnel in plan.tunnels
        for host in tunnel.ends
        for difference in _device(
            f"hosts.{host}.{tunnel.device}", by_name.get((host, tunnel.device)), tunnel.mtu, tunnel.bridge
        )
    ]


def of_host(entries: Iterable[Entry], host: str) -> list[Entry]:
    """Returns the entries of one host of a multi-host lab, and entries without a host; several hosts may have
    devices of the same name.
    """
    return [entry for entry in entries if entry.get("host", host) == host]


def _device(place: str, entry: Entry | None, mtu: int, master: str | None) -> list[Difference]:
    if entry is None:
        return [Difference(place, "present", "absent")]
    pairs: list[tuple[str, object, object]] = [
        ("mtu", mtu, entry.get("mtu")),
        ("up", True, "UP" in entry.get("flags", ())),
    ]
    if master is not None:
        pairs.append(("bridge", master, entry.get("master")))
    return [Difference(f"{place}.{what}", wanted, read) for what, wanted, read in pairs if wanted != read]


def not_forwarding(
    entries: Iterable[Entry], ports: Collection[str] | None, trees: Collection[str] = ()
) -> list[str]:
    """Returns the bridge ports (of `ports`; None: all) among the entries of `ip -j -d link` that do not
    forward frames yet.

    trees: bridges with a spanning tree, whose ports may also be blocked permanently. A port that is up
    forwards only when the kernel has processed its carrier, a moment later. A packet that is sent earlier is
    lost, and a TCP connection then starts a second late.
    """
    found = []
    for entry in entries:
        info = entry.get("linkinfo", {})
        if info.get("info_slave_kind") != "bridge" or (ports is not None and entry["ifname"] not in ports):
            continue
        settled = ("forwarding", "blocking") if entry.get("master") in trees else ("forwarding",)
        if info.get("info_slave_data", {}).get("state") not in settled:
            found.append(str(entry["ifname"]))
    return found


def agents(nodes: Iterable[Node], answers: dict[str, Entry]) -> list[Difference]:
    """Compares each node's host name, interfaces (address, prefix, MTU, MAC, up, offloads off), forwarding if
    requested, and routes with the agents' answers, by node; a missing answer is a difference.
    """
    found: list[Difference] = []
    for node in nodes:
        place = f"nodes.{node.name}"
        if (answer := answers.get(node.name)) is None:
            found.append(Difference(place, "configured", "no answer"))
            continue
        if answer.get("hostname") != node.hostname:
            found.append(Difference(f"{place}.hostname", node.hostname, answer.get("hostname")))
        by_name = {i["name"]: i for i in answer.get("interfaces", [])}
        for interface in node.interfaces:
            found += _interface(f"{place}.{interface.name}", interface, by_name.get(interface.name))
        if node.forward and not answer.get("forward"):
            found.append(Difference(f"{place}.forward", True, answer.get("forward")))
        found += _routes(f"{place}.routes", node.routes, answer.get("routes", []))
    return found


def _routes(place: str, requested: Sequence[Route], read: Sequence[Entry]) -> list[Difference]:
    """Returns a difference for each destination whose next hops differ, in either direction."""
    wanted = {to: sorted(route.via) for route in requested for to in route.to}
    there = {to: sorted(route["via"]) for route in read for to in route["to"]}
    if wanted == there:
        return []
    wrong = sorted(to for to in wanted.keys() | there.keys() if wanted.get(to) != there.get(to))
    return [Difference(f"{place}.{to}", wanted.get(to, "none"), there.get(to, "none")) for to in wrong]


def _interface(place: str, requested: Interface, read: Entry | None) -> list[Difference]:
    if read is None:
        return [Difference(place, "present", "absent")]
    pairs: list[tuple[str, object, object]] = [
        ("address", requested.address, read.get("address")),
        ("prefix", requested.prefix, read.get("prefix")),
        ("mtu", requested.mtu, read.get("mtu")),
        ("mac", requested.mac.lower(), str(read.get("mac", "")).lower()),
        ("up", True, read.get("up")),
    ]
    if requested.second:
        pairs += [
            ("second", requested.second, read.get("second")),
            ("second_prefix", requested.second_prefix, read.get("second_prefix")),
        ]
    pairs += [(f"offloads.{name}", False, value) for name, value in read.get("offloads", {}).items()]
    return [Difference(f"{place}.{what}", a, r) for what, a, r in pairs if a != r]


def impairment(place: str, requested: Impairment, entries: Iterable[Entry], device: str) -> list[Difference]:
    """Compares one direction's impairment with the entries of `tc -j qdisc`, by queueing.mismatches."""
    return [
        Difference(f"{place}.{field or device}", wanted, read)
        for field, wanted, read in queueing.mismatches(requested, list(entries), device)
    ]
