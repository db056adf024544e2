"""Exports a plan as a Mininet script: hosts, LinuxBridge switches, and links with a TCIntf at each end."""

from __future__ import annotations

import math
from collections.abc import Iterator

from contract.plan import Impairment, Link, Plan

from .outgoing import Exported, ExportError, insist_light, left_out, node_commands, sides

MOST_MBPS = 1000  # TCIntf.bwParamMax, the largest rate that Mininet sets
LONGEST = 10  # longest node name in characters, because NAME-ethN names an interface
HEAD = '''\
#!/usr/bin/env python3
"""The lab {lab}, for Mininet: run as root; opens its command line."""

from mininet.cli import CLI
from mininet.link import TCIntf
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge

net = Mininet(switch=LinuxBridge, controller=None, waitConnected=False)
'''
TAIL = """
net.start()
for host, commands in COMMANDS.items():
    net[host].cmd("ip addr flush scope global")
    for command in commands:
        net[host].cmd(command)
CLI(net)
net.stop()
"""


def export(plan: Plan) -> Exported:
    """Returns the script, with lines on what is left out.

    Raises ExportError for a plan with a VM node, passthrough or a VLAN tag, or with a name of a node or
    segment that has more than LONGEST characters.
    """
    insist_light(plan)
    for name in [*(n.name for n in plan.nodes), *(s.name for s in plan.segments)]:
        if len(name) > LONGEST:
            raise ExportError(
                f"{name}: has more than {LONGEST} characters, too long for Mininet's interfaces; rename it"
            )
    body = [*_fast(plan), *_machines(plan), *_wires(plan)]
    commands = {
        node.name: list(node_commands(node, {c.name: f"{node.name}-{c.name}" for c in node.interfaces}))
        for node in plan.nodes
    }
    table = "".join(f"    {name!r}: {listed!r},\n" for name, listed in commands.items())
    text = "\n".join([HEAD.format(lab=plan.lab), *body, "", f"COMMANDS = {{\n{table}}}", TAIL])
    return Exported(text, tuple(left_out(plan)))


def _fast(plan: Plan) -> Iterator[str]:
    """Yields the line without which Mininet ignores the plan's rates above MOST_MBPS."""
    most = max((way.impairment.rate_bps for link in plan.links for _, way in sides(link)), default=0) / 1e6
    if most > MOST_MBPS:
        yield f"TCIntf.bwParamMax = {math.ceil(most)}"


def _machines(plan: Plan) -> Iterator[str]:
    for number, segment in enumerate(plan.segments, 1):  # Mininet derives an id only from names such as s1
        stp = ", stp=True" if segment.stp else ""
        yield f"net.addSwitch({segment.name!r}, dpid={f'{number:x}'!r}{stp})"
    for node in plan.nodes:
        yield f"net.addHost({node.name!r}, ip=None)"


def _wires(plan: Plan) -> Iterator[str]:
    """Yields the script's lines of links: each node's interfaces in their order, then links between
    segments.
    """
    access = {(link.a, link.b): link for link in plan.links if link.kind == "access"}
    wires = {link.name: link for link in plan.links if link.kind == "nodes"}
    for node in plan.nodes:
        for card in node.interfaces:
            name = f"{node.name}-{card.name}"
            if (wire := wires.get(card.segment)) is None:
                yield _link(node.name, card.segment, access.get((node.name, card.segment)), name)
            elif node.name == wire.a:
                far = next(n for n in plan.nodes if n.name == wire.b)
                end = next(c.name for c in far.interfaces if c.segment == wire.name)
                yield _link(wire.a, wire.b, wire, name, f"{wire.b}-{end}")
    for link in plan.links:
        if link.kind == "segments":
            yield _link(link.a, link.b, link)


def _link(a: str, b: str, link: Link | None, first: str = "", second: str = "") -> str:
    words = [repr(a), repr(b)]
    words += [f"intfName1={first!r}"] if first else []
    words += [f"intfName2={second!r}"] if second else []
    if link is not None and (link.forward.impairment.present or link.reverse.impairment.present):
        words += ["cls1=TCIntf", "cls2=TCIntf"]
        words += [
            f"params1={_params(link.forward.impairment)}",
            f"params2={_params(link.reverse.impairment)}",
        ]
    return f"net.addLink({', '.join(words)})"


def _params(impairment: Impairment) -> str:
    """Returns the rate, delay, jitter, loss and packet limit that are not 0, as the text of a dict of
    TCIntf's parameters, in Mbit/s, ms and percent.
    """
    given: list[tuple[float, str, object]] = [
        (impairment.rate_bps, "bw", impairment.rate_bps / 1e6),
        (impairment.delay_ns, "delay", f"{impairment.delay_ns / 1e6:.12g}ms"),
        (impairment.jitter_ns, "jitter", f"{impairment.jitter_ns / 1e6:.12g}ms"),
        (impairment.loss, "loss", impairment.loss * 100),
        (impairment.limit_packets, "max_queue_size", impairment.limit_packets),
    ]
    return repr({name: value for wanted, name, value in given if wanted})
