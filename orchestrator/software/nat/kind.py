"""Enters translating routers in the registry: their checks and description for readers."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Program, Software

from ..checking import Checks, Here, joined, light
from ..kind import Costs, Kind
from .file import LEAST_TIMEOUT_NS, LONGEST_TIMEOUT_NS, Nat
from .planning import plan

_MEMORY_BYTES = 2_000_000  # memory of the shell that sets the rules and waits


def _check(report: Checks, here: Here, model: Nat) -> None:
    path = (*here.path, KIND.name)
    light(report, here, path, "whose image has no nft")
    for node in here.nodes:
        if not report.forwards(node):
            report.add(path, None, f"node {node} does not forward", "write `forward: true` at the node")
    if sum(isinstance(other, Nat) for other in report.programs(here.nodes[0]).values()) > 1:
        report.add(path, None, "a node has one NAT", "write all its inside segments in one `nat`")
    _sides(report, here, model)
    _ports(report, here, model)
    for key in ("udp_timeout", "tcp_timeout"):
        wanted = getattr(model.nat, key)
        if wanted is not None and (not 0 < wanted <= LONGEST_TIMEOUT_NS or wanted % LEAST_TIMEOUT_NS):
            most = LONGEST_TIMEOUT_NS // LEAST_TIMEOUT_NS
            rule = f"is not a whole number of seconds from 1 to {most}, in which the kernel counts"
            report.add((*path, key), f"{wanted / 1e9:g} s", rule, 'write for example "30 s"')


def _sides(report: Checks, here: Here, model: Nat) -> None:
    """Reports a NAT whose two sides are missing, or are not segments of its node with IPv4."""
    path, options = (*here.path, KIND.name), model.nat
    if len(here.segments) < 2:
        rule = f"has no two sides: {here.path[1]} stands in {len(here.segments)} segment"
        remedy = "write `segment: [INSIDE, OUTSIDE]` at the node"
        report.add(path, None, rule, remedy)
        return
    for key, names in (("inside", options.inside), ("outside", [options.outside])):
        for name in names:
            if name not in here.segments:
                remedy = f"name one of {', '.join(here.segments)}"
                report.add((*path, key), name, f"{here.path[1]} does not stand there", remedy)
            elif report.subnet(name) is not None and report.subnet(name, "IPv4") is None:
                report.add((*path, key), name, "has IPv6, of which nothing is translated", "give it IPv4")
    if options.outside in (report.bridged(options.inside) or options.inside):
        rule = "is inside, too: the NAT has no two sides"
        report.add((*path, "outside"), options.outside, rule, "name a segment that no link joins to `inside`")


def _ports(report: Checks, here: Here, model: Nat) -> None:
    taken: set[tuple[str, int]] = set()
    for number, one in enumerate(model.nat.ports):
        path = (*here.path, KIND.name, "ports", number)
        if (one.protocol, one.port) in taken:
            rule = f"an earlier entry has port {one.port} of {one.protocol}"
            report.add((*path, "port"), one.port, rule, "choose another port")
        taken.add((one.protocol, one.port))
        if not report.node((*path, "to"), one.to):
            continue
        if one.to in here.nodes:
            rule = "is the router itself, whose own ports are open to the outside"
            report.add((*path, "to"), one.to, rule, "name a node inside, or leave the entry out")
            continue
        inside = report.bridged(model.nat.inside)
        if inside is not None and not inside & set(report.segments(one.to)):
            rule = f"{one.to} does not stand inside"
            report.add((*path, "to"), one.to, rule, "name a node of an inside segment")
        else:
            joined(report, here, (*path, "to"), one.to, one.to)


def _words(software: Software, _flows: Sequence[Flow]) -> str:
    inside, outside = ", ".join(software.spec["inside"]), software.spec["outside"]
    ports = software.spec["ports"]
    return f"NAT of {inside} to {outside}" + (f", {len(ports)} ports lead inside" if ports else "")


KIND = Kind(
    name="nat",
    key="nat",
    model=Nat,
    what="a router's NAT",
    example="nat: {inside: plant, outside: wan}",
    check=_check,
    plan=plan,
    words=_words,
    costs=lambda _software, _flows: Costs(_MEMORY_BYTES),
    in_agent=False,
    endpoint=lambda _model: False,
    programs=(
        Program("nft", "nftables", ("nft", "--version"), "topologies with a NAT fail when their nodes start"),
    ),
    titles={"NatOptions": "software.NAME.nat: a router's NAT", "Forwarded": "nat's ports[]"},
)
