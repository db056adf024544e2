"""Checks or lowers MTUs so that frames fit into the tunnels between hosts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from contract.plan import Host, Tunnel
from contract.plan.family import IPV6_LEAST_MTU, family

from ...language.problem import TopologyError
from ...topology.expansion import expand
from ...topology.loading import Topology
from ..wires import MTU
from .tunnels import overhead, reached_by

M = TypeVar("M", bound=Any)


def hosts_of(topology: Topology) -> tuple[Host, ...]:
    """Returns the hosts of the file in the form of the plan."""
    return tuple(
        Host(
            name,
            host.machine or "",
            host.address or "",
            host.cores,
            host.cpu_clock.mhz if host.cpu_clock is not None else None,
            host.memory,
            host.bridge_ports,
        )
        for name, host in topology.model.hosts.items()
    )


def fitted(topology: Topology) -> Topology:
    """Returns the topology with the MTUs of segments, nodes, groups and links between nodes lowered so that
    frames fit into a tunnel, if it has several hosts and `oversize: lower`; otherwise returns it unchanged.
    Raises TopologyError if the lowered MTU is too small for the IPv6 that the lab uses.
    """
    model = topology.model
    if len(model.hosts) < 2 or model.underlay.oversize != "lower":
        return topology
    most = model.underlay.mtu - overhead(hosts_of(topology))
    subnets = [one for segment in model.segments.values() for one in segment.subnet]
    subnets += [one for link in model.links.values() for one in link.subnet]
    if most < IPV6_LEAST_MTU and any(family(one) == "IPv6" for one in subnets):
        rule = f"leaves {most} to the lab, less than IPv6 works with ({IPV6_LEAST_MTU}; RFC 8200, 5)"
        remedy = "write a larger one, or `oversize: fragment`"
        raise TopologyError(
            [topology.document.problem(("underlay", "mtu"), str(model.underlay.mtu), rule, remedy)]
        )
    wires = {name: link for name, link in model.links.items() if not set(link.between) & set(model.segments)}
    changed = {
        "segments": {name: _at_most(part, most) for name, part in model.segments.items()},
        "nodes": {name: _at_most(part, most) for name, part in model.nodes.items()},
        "groups": {name: _at_most(part, most) for name, part in model.groups.items()},
        "links": {**model.links, **{name: _at_most(part, most, MTU) for name, part in wires.items()}},
    }
    lower = model.model_copy(update=changed)
    return dataclasses.replace(topology, model=lower, names=expand(lower))


def _at_most(part: M, most: int, default: int = 0) -> M:
    """Returns the part with its MTU lowered to `most`, or unchanged if its MTU is not larger; `default`: the
    MTU of a part that states none.
    """
    mtu = part.mtu if part.mtu is not None else default
    changed: M = part.model_copy(update={"mtu": most}) if mtu > most else part
    return changed


def insist_they_fit(topology: Topology, tunnels: Iterable[Tunnel], hosts: Sequence[Host]) -> None:
    """Raises TopologyError for tunnels whose frames exceed the underlay's MTU, unless the file lowers MTUs,
    or fragments packets over IPv4.

    Over IPv6, VXLAN packets cannot be fragmented on the way (RFC 8200, 5: only by their sender; ip6_fragment
    in net/ipv6/ip6_output.c refuses them).
    """
    underlay, six = topology.model.underlay, reached_by(hosts) == "IPv6"
    if underlay.oversize == "lower" or (underlay.oversize == "fragment" and not six):
        return
    most = underlay.mtu - overhead(hosts)
    rule = f"stands on several hosts, and the underlay's {underlay.mtu} leave {most} inside a tunnel"
    rule += "; IPv6 does not fragment its packets" if six else ""
    problems = [
        topology.document.problem(
            _place(topology, tunnel.segment),
            str(tunnel.mtu),
            rule,
            f"write `mtu: {most}`, or `underlay: {{oversize: lower}}`, which gives all of the lab that",
        )
        for tunnel in tunnels
        if tunnel.mtu > most
    ]
    if problems:
        raise TopologyError(problems)


def _place(topology: Topology, name: str) -> tuple[str, ...]:
    return "segments" if name in topology.model.segments else "links", name, "mtu"
