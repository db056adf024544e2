"""Compares the counters of the nodes' network stacks with those of interfaces, links, and one another."""

from __future__ import annotations

import polars as pl

from capture.conservation.check import WRONG, Compared, Found, Rule
from capture.conservation.counters import light_nodes, node_steps
from capture.conservation.evidence import Evidence
from capture.conservation.ports import ports
from contract.plan import WAYS, Link, Plan, Software

STACK_REPEATS = Rule(
    "stack-repeats", "TCP segments that a stack retransmitted", "the fast and slow retransmissions",
    "counters of stacks are wrong: repeat the run, and report it as an error",
)  # fmt: skip
STACK_BYTES = Rule(
    "stack-bytes", "bytes that nodes' interfaces received", "those of the packets that their stacks received",
    WRONG, "at most",
)  # fmt: skip
LINK_STACK = Rule(
    "link-stack", "frames that links of nodes sent, dropped or hold", "the packets that their stacks sent",
    WRONG, "at most",
)  # fmt: skip
# A segment is sent again in recovery (fast), after a loss (slow start), when a timer runs out, as a probe for
# a loss, or since its SYN was not answered (net/ipv4/tcp_output.c).
REPEATS, RECOVERED = "TcpRetransSegs", ("TcpExtTCPFastRetrans", "TcpExtTCPSlowStartRetrans")
OTHERWISE = ("TcpExtTCPTimeouts", "TcpExtTCPLossProbes", "TcpExtTCPSynRetrans")
OCTETS, PACKETS = ("IpExtInOctets", "Ip6InOctets"), ("IpInReceives", "Ip6InReceives")
# TCP hands over many segments at once, so they are counted separately
SENT = ("IpOutTransmits", "Ip6OutTransmits", "TcpOutSegs", REPEATS)
ETHERNET, SHORT, LONGEST = 14, 60, 1518
BEYOND_MTU = LONGEST - 1500  # the longest frame less the MTU: Ethernet's header and a VLAN tag
# number of frames that are no packet of the node's stack: ARP, and frames that a bridge sends to every port
STRAY = 8
OTHER_SHARE = 0.01
BARE = ("goose", "sampled_values", "frames", "gateway")  # kinds that send frames instead of packets


def repeats_have_reasons(e: Evidence) -> Found:
    if e.stacks is None:
        return Found(left_out=["no counters of stacks"])
    again, reasons, others = (e.counted(names) for names in ((REPEATS,), RECOVERED, OTHERWISE))
    compared = [
        Compared(node, again.get(node, 0), reasons.get(node, 0), "segments", others.get(node, 0))
        for node in sorted(again.keys() | reasons.keys())
    ]
    return Found(compared, absent="no stack sent a segment again")


def interfaces_have_packets(e: Evidence) -> Found:
    """Checks that the interfaces of each light node received at most the bytes of its stack's IP packets, an
    Ethernet header for each frame, and a tolerance for other frames.

    Nodes with VLAN interfaces are left out. Nothing is compared if programs send frames without IP.
    """
    if why := e.unsuitable or _bare(e.plan):
        return Found(left_out=[why])
    steps = node_steps(e)
    if steps is None or e.stacks is None:
        return Found(left_out=["no counters of nodes, or none of stacks"])
    octets, packets = e.counted(OCTETS), e.counted(PACKETS)
    sums = steps.filter("whole").group_by("node").agg(pl.col("rx_bytes", "rx_packets").sum()).sort("node")
    tagged, longest = _tagged(e.plan), _longest(e.plan)
    compared = []
    for node, size, frames in sums.filter(~pl.col("node").is_in(tagged)).iter_rows():
        known = octets.get(node, 0) + ETHERNET * frames
        others = max(0, frames - packets.get(node, 0)) * longest.get(node, LONGEST)
        tolerance = STRAY * LONGEST + others + round(OTHER_SHARE * frames) * SHORT
        compared.append(Compared(node, size, known, "bytes", tolerance))
    return Found(compared)


def links_have_packets(e: Evidence) -> Found:
    """Checks that the links out of each light node sent, dropped or queued at most as many frames as its
    stack sent packets, plus 1 % and 8 others.

    Left out are links that duplicate frames, nodes with programs of the user, and stacks that count no
    packets. Nothing is compared if programs send frames without IP.
    """
    if why := e.unsuitable or _bare(e.plan):
        return Found(left_out=[why])
    if e.links is None or e.stacks is None:
        return Found(left_out=["no counters of links, or none of stacks"])
    sent, compared, left_out = e.counted(SENT), list[Compared](), list[str]()
    own = {node.name for node in light_nodes(e.plan) if any(map(_of_user, node.software))}
    doubling = {link.name for link in e.plan.links if _doubles(link)}
    out = ports(e.plan).rows.filter((pl.col("way") == "tx") & ~pl.col("link").is_in(list(doubling)))
    taken = out.unique(["node", "link", "direction"]).join(_taken(e.links), on=["link", "direction"])
    for node, count in taken.group_by("node").agg(pl.col("frames").sum()).sort("node").iter_rows():
        if node in own or not e.counted(SENT[:2]).get(node):
            left_out.append("a program of the user's own may send frames, or a stack does not count packets")
            continue
        compared.append(Compared(node, count, sent[node], "frames", STRAY + round(OTHER_SHARE * count)))
    return Found(compared, left_out)


def _taken(links: pl.DataFrame) -> pl.DataFrame:
    """Returns the frames that each direction sent, dropped or queued from its first sample to its last; omits
    directions whose counters restarted.
    """
    over = ("link", "direction")
    columns = ("packets", "dropped")
    steps = links.sort("t_ns").with_columns(pl.col(*columns).diff().over(over).name.suffix("_step"))
    fell = pl.any_horizontal((pl.col(f"{name}_step") < 0).any() for name in columns)
    grown = pl.sum_horizontal(
        pl.col(name).last() - pl.col(name).first() for name in (*columns, "backlog_packets")
    )
    return steps.group_by(over).agg(frames=grown, fell=fell).filter(~pl.col("fell")).drop("fell")


def _bare(plan: Plan) -> str:
    kinds = {role.kind for node in plan.nodes for role in node.software}
    return "programs send frames that are no packets" if kinds & set(BARE) else ""


def _longest(plan: Plan) -> dict[str, int]:
    """Returns for each node the length in bytes of the longest frame that its interfaces take, at least
    LONGEST; omits nodes without an interface.

    A bridge floods a frame to all its ports until it has learned the port of the frame's destination. An
    interface counts such a frame for another node, and the stack does not.
    """
    return {
        node.name: max(LONGEST, *(one.mtu + BEYOND_MTU for one in node.interfaces))
        for node in plan.nodes
        if node.interfaces
    }


def _tagged(plan: Plan) -> list[str]:
    """Returns the names of nodes with VLAN interfaces, whose byte counters may leave the tags out."""
    return [n.name for n in plan.nodes if any("." in i.name for i in n.interfaces)]


def _of_user(role: Software) -> bool:
    return bool(role.process) and role.role not in ("broker", "server")


def _doubles(link: Link) -> bool:
    return any(link.way(way).impairment.duplicate for way in WAYS)
