"""Monitors datagrams that nodes dropped at full sockets, and TCP segments that nodes retransmitted although
the topology requests no loss.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import polars as pl

from capture.conservation.evidence import Evidence
from capture.conservation.ways import Ways, ends, least_from, ways
from capture.monitors.monitor import Monitor, Reading, listed
from capture.monitors.queues import FINDING
from contract.plan import Plan

DROPS = Monitor("socket-drops", 1, "datagrams and frames")
# Counters of datagrams dropped because the socket's buffer, or the memory for all buffers, was full
# (networking/snmp_counter.rst).
RECEIVE = ("UdpRcvbufErrors", "Udp6RcvbufErrors", "UdpMemErrors", "Udp6MemErrors")
SEND = ("UdpSndbufErrors", "Udp6SndbufErrors")
# The detail of a session record with which a role with packet sockets ends (images/agent, `overrun`).
FRAMES = re.compile(r"(\d+) frames arrived and found the socket's buffer full")

# Threshold: a loss of 0.1 % limits TCP Reno to 39 segments per round trip, 1 / sqrt(2 * 0.001 / 3) (Padhye et
# al. 1998).
AGAIN = Monitor("retransmissions", 0.1, "% of a node's segments")
REPEATED, HANDSHAKES, SEGMENTS = "TcpRetransSegs", "TcpExtTCPSynRetrans", "TcpOutSegs"
FEWEST = 3  # least number of segments; single ones are probes for a loss that did not happen
BREAKING = ("link-down", "stop", "kill", "restart", "freeze", "disk-full")


def drops(e: Evidence) -> Reading:
    """Reports the datagrams and frames that found the buffer of their socket full. Packets that a capture
    lost are a separate finding, which makes the run suspect.
    """
    if e.stacks is None:
        return DROPS.untold("no counters of stacks")
    texts = [
        *((n, f"{name} dropped {n:,} datagrams that found the buffer of their socket full")
          for name, n in _of_nodes(e, RECEIVE).items()),
        *((n, f"{name} could not send {n:,} datagrams: the buffer of their socket was full")
          for name, n in _of_nodes(e, SEND).items()),
        *((n, f"{name} dropped {n:,} frames that found the buffer of a packet socket full")
          for name, n in _frames(e)),
    ]  # fmt: skip
    said = listed([text for _, text in sorted(texts, key=lambda one: -one[0])])
    why = f"{said}: they came faster than the program read them, and count as lost"
    return DROPS.read(sum(n for n, _ in texts), why, "no socket dropped a datagram or a frame")


def _of_nodes(e: Evidence, counters: Iterable[str]) -> dict[str, int]:
    """Returns the sum of the counters by node, without zeros."""
    assert e.stacks is not None
    rows = e.stacks.filter(pl.col("counter").is_in(list(counters)) & (pl.col("value") > 0))
    return dict(rows.group_by("node").agg(pl.col("value").sum()).sort("node").iter_rows())


def _frames(e: Evidence) -> list[tuple[str, int]]:
    if e.sessions is None:
        return []
    rows = e.sessions.filter(what="failed").select("endpoint", "detail").iter_rows()
    return [(end, int(found[1])) for end, detail in rows if (found := FRAMES.search(detail or ""))]


def retransmissions(e: Evidence) -> Reading:
    """Reports the nodes that sent 0.1 % of their TCP segments again, and at least three. Leaves out nodes
    whose packets may pass a link with requested loss, or a queue that dropped packets as requested.
    Handshakes are left out: a server may start after its clients.
    """
    if e.stacks is None:
        return AGAIN.untold("no counters of stacks")
    again, tries, sent = (_of_nodes(e, [name]) for name in (REPEATED, HANDSHAKES, SEGMENTS))
    counts = {node: (n - tries.get(node, 0), sent.get(node, 0)) for node, n in again.items()}
    shares = {n: 100 * many / max(1, of) for n, (many, of) in counts.items() if many >= FEWEST}
    near = ways(e) if shares else {}
    places = {node: _places(near, node) for node in shares}
    why = {node: asked for node, at in places.items() if (asked := _asked(e.plan, at) or _short(e, at))}
    if why and len(why) == len(shares):
        return AGAIN.untold(next(iter(why.values())))
    left = {node: share for node, share in shares.items() if node not in why}
    over = sorted((n for n in left if left[n] >= AGAIN.threshold), key=lambda n: -left[n])
    said = [f"{n} sent {counts[n][0]:,} of {counts[n][1]:,} segments again" for n in over]
    causes = _causes(e, set().union(*(places[node] for node in over)))
    reached = f"{listed(said)} although the file requests no loss: {causes}"
    return AGAIN.read(max(left.values(), default=0.0), reached, "nodes sent hardly a segment again")


def _places(near: Ways, node: str) -> set[str]:
    """Returns the nodes and segments that packets of the node can reach."""
    return set(least_from(near, f"node {node}"))


def _asked(plan: Plan, places: set[str]) -> str:
    """Returns the reason why the topology itself makes packets at these places get lost; "" if there
    is none.
    """
    return next((why for place, why in _losing(plan) if place in places), "")


def _losing(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yields each place at which the topology requests lost packets, with the reason in words."""
    of = {link.name: ends(link)[0] for link in plan.links}
    for link, _, impairment in plan.impairments():
        if impairment.loss or impairment.gemodel or impairment.corrupt:
            yield of[link], f"the file requests loss or flipped bits on link {link}"
    for one in plan.links:
        if one.forward.trace is not None or one.reverse.trace is not None:
            yield of[one.name], f"link {one.name} follows a trace, which may lose packets"
    for event in plan.events:
        if event.action in BREAKING:
            for target in event.targets:
                yield of.get(target, f"node {target}"), f"the timeline has {event.action} of {target}"


def _short(e: Evidence, places: set[str]) -> str:
    """Returns as text the drops of a queue at these places, if the file requests all of them; "" if nothing
    was dropped, or if one queue overflowed that the file does not make short.
    """
    dropped = _dropped(e, places)
    if not dropped or any(_overflowed(e, link, way) for link, way, _ in dropped):
        return ""
    link, way, count = dropped[0]
    return (
        f"the file makes the queue of link {link} {way} short or changes it, and it dropped {count:,} packets"
    )


def _causes(e: Evidence, places: set[str]) -> str:
    """Returns the queues at these places that overflowed although the topology does not make them short; if
    there are none, other possible causes.
    """
    dropped = [one for one in _dropped(e, places) if _overflowed(e, one[0], one[1])]
    if dropped:
        return listed([f"the queue of link {link} {way} dropped {n:,} packets" for link, way, n in dropped])
    return "no link dropped a packet, so packets were reordered, or acknowledged later than TCP's timers"


def _overflowed(e: Evidence, link: str, way: str) -> bool:
    """Returns whether the lab found that the queue dropped packets although the topology does not
    request it.
    """
    found = (str(w.get("text")) for w in e.manifest.warnings if w.get("code") == FINDING)
    return any(text.startswith(f"link {link} {way}: ") for text in found)


def _dropped(e: Evidence, places: set[str]) -> list[tuple[str, str, int]]:
    """Returns link, direction and number of dropped packets of the queues at these places that dropped any,
    the most first.
    """
    if e.links is None:
        return []
    names = [link.name for link in e.plan.links if places & set(ends(link))]
    grown = pl.col("dropped").max() - pl.col("dropped").min()
    rows = e.links.filter(pl.col("link").is_in(names)).group_by("link", "direction").agg(grown)
    return rows.filter(pl.col("dropped") > 0).sort("dropped", "link", descending=[True, False]).rows()
