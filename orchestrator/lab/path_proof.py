"""Proves paths: compares the routers that packets pass, and their round trip, with the plan's routes and
delays, for a sample of node pairs.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from contract.plan import Node, Plan
from contract.plan.family import family
from contract.plan.tolerance import Tolerance
from contract.proof import Proven
from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import Tracer
from orchestrator.lab.judgement import ProofResult, shown, verdict
from orchestrator.lab.probes import JITTER_TAIL
from orchestrator.lab.traceroute import FRAME_BYTES, SPACING_S, Traceroute, TracerouteResult
from orchestrator.plan.paths import Path, Paths, pairs

MOST_PATHS = 24
# attempts at a path that does not hold; the second attempt, which runs alone, replaces the first, which ran
# beside others
LOOKS = 3
SURE = 0.93  # confidence that the median lies between the smallest and the largest of five echoes
Way = tuple[Node, str, Path, Path]  # sending node, destination address, path there, path back


def prove(plan: Plan, tracer: Tracer, tolerance: Tolerance) -> list[Proven]:
    """Judges hops and round trips of at most 24 sampled paths over routers, from light nodes; empty if there
    is no such path.

    An undecided round trip is measured up to twice more, alone. So is a round trip that fails while several
    paths are measured together, because other echoes may be the cause.
    """
    paths = Paths.of(plan)
    ways = _sample([way for one, other in pairs(plan) for way in _ways(paths, one, other)])
    names = _names(ways)
    requested = [
        Traceroute(
            a.netns,
            address,
            len(there.nodes) - 1,
            SECOND + 2 * (there.delay_ns() + back.delay_ns()),
            _alone_ns(there, back),
        )
        for a, address, there, back in ways
    ]
    owner = {address: n.name for n in plan.nodes for card in n.interfaces for address in card.addresses}
    machines = {node.name for node in plan.nodes if node.vm is not None}
    found = tracer.traceroute(requested) if requested else []
    together = len(requested) > 1
    for attempt in range(LOOKS - 1):
        for n, way in enumerate(ways):
            judged = _time(names[n], way, found[n], tolerance, machines).verdict
            # On a slow path, echoes may queue behind those of other paths; then a path would fail because of
            # the others.
            if judged == "cannot tell" or (judged == "fails" and together and attempt == 0):
                alone = tracer.traceroute([requested[n]])[0].round_trips_ns
                if together and attempt == 0 and alone:
                    found[n].round_trips_ns = alone
                else:
                    found[n].round_trips_ns += alone
    return [
        line
        for name, way, seen in zip(names, ways, found, strict=True)
        for line in (_hops(name, way, seen, owner), _time(name, way, seen, tolerance, machines))
    ]


def _alone_ns(there: Path, back: Path) -> int:
    """Returns twice the round trip (ns) if a frame occupies a link for more than half the spacing of echoes,
    so that echoes must be sent one by one; else 0.
    """
    rates = [rate for path in (there, back) if (rate := path.bottleneck_bps)]
    slow = rates and 8 * FRAME_BYTES * 2 / min(rates) > SPACING_S
    return 2 * (there.delay_ns(FRAME_BYTES) + back.delay_ns(FRAME_BYTES)) if slow else 0


def _ways(paths: Paths, one: Node, other: Node) -> Iterator[Way]:
    """Yields both directions of a pair of nodes, in each family that both have, if they lead over a router
    and the sender is no VM.
    """
    for a, b in ((one, other), (other, one)):
        if a.vm is not None:
            continue
        home = {family(address): address for address in reversed(paths.addresses_of(a.name, b.name))}
        for address in paths.addresses_of(b.name, a.name):
            there, back = paths.to(a.name, address), paths.to(b.name, home.get(family(address), ""))
            if there is not None and back is not None and len(there.nodes) > 2:
                yield a, there.addresses[-1], there, back


def _sample(ways: Sequence[Way]) -> list[Way]:
    """Returns all paths, or MOST_PATHS (24) of them, evenly spread over the list."""
    count = min(len(ways), MOST_PATHS)
    return [ways[i * len(ways) // count] for i in range(count)]


def _names(ways: Sequence[Way]) -> list[str]:
    """Returns the names of paths; if a pair of nodes has a path in each address family, the name includes the
    family.
    """
    plain = [f"{a.name} -> {there.nodes[-1]}" for a, _, there, _ in ways]
    count = Counter(plain)
    return [
        f"{name} ({family(address)})" if count[name] > 1 else name
        for name, (_, address, _, _) in zip(plain, ways, strict=True)
    ]


def _hops(name: str, way: Way, seen: TracerouteResult, owner: dict[str, str]) -> Proven:
    """Judges the hops: holds if every planned router and the destination answered in its place,
    else fails.
    """
    requested = way[2].nodes[1:]
    gone = tuple(
        owner.get(seen.hops[n], seen.hops[n]) if n in seen.hops else "?" for n in range(1, len(requested) + 1)
    )
    judged: ProofResult = "holds" if gone == requested else "fails"
    reason = (
        "" if gone == requested else f"requested by way of {', '.join(requested)}; went {', '.join(gone)}"
    )
    count, answered = float(len(requested)), float(len(seen.hops))
    return Proven(
        name,
        "path",
        "hops",
        count,
        count,
        answered,
        None,
        None,
        "hops",
        len(seen.hops),
        judged,
        reason,
    )


def _interval(values: Sequence[int]) -> tuple[float, float]:
    """Returns the confidence interval of the median by order statistics: it omits as many values at each end
    as the confidence SURE allows. If none may be omitted, the interval reaches from the smallest value to the
    largest.
    """
    ordered, n = sorted(values), len(values)
    left_out = max(
        (k for k in range(n // 2) if 1 - 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n >= SURE),
        default=0,
    )
    return float(ordered[left_out]), float(ordered[n - 1 - left_out])


def _time(name: str, way: Way, seen: TracerouteResult, each: Tolerance, machines: Collection[str]) -> Proven:
    """Judges the median round trip against the sum of the links' requested delays, with a tolerance that
    grows with hops and jitter.

    The result is `cannot tell` if no echo arrived. It is also `cannot tell` if the round trip is too long or
    undecided and the path passes a virtual machine, which adds its own forwarding time.
    """
    _, _, there, back = way
    frame_bytes = FRAME_BYTES + (20 if family(way[1]) == "IPv6" else 0)
    requested = float(there.delay_ns(frame_bytes) + back.delay_ns(frame_bytes))
    values = seen.round_trips_ns
    if not values:
        return Proven(
            name, "path", "round trip", requested, requested, None, None, None, "ns", 0, "cannot tell",
            "no echo came back",
        )  # fmt: skip
    middle, (low, high) = statistics.median(values), _interval(values)
    # Every hop there and back wakes a kernel, and the jitter of all links may have the same sign.
    hops = len(there.nodes) + len(back.nodes) - 2
    tolerance = max(each.amount * hops, each.share * requested) + JITTER_TAIL * (
        there.jitter_ns + back.jitter_ns
    )
    judged = verdict(low, high, requested - tolerance, requested + tolerance)
    ends = f"requested {shown('ns', requested)}, measured {shown('ns', low, high)}"
    reason = "" if judged == "holds" else f"{ends}, tolerance {shown('ns', tolerance)}"
    passed = [name for name in dict.fromkeys([*there.nodes[1:], *back.nodes[:-1]]) if name in machines]
    if passed and judged != "holds" and low >= requested - tolerance:
        judged = "cannot tell"
        reason = f"virtual machines on the way ({', '.join(passed)}) add {shown('ns', middle - requested)}"
    return Proven(
        name,
        "path",
        "round trip",
        requested,
        requested,
        middle,
        low,
        high,
        "ns",
        len(values),
        judged,
        reason,
        tolerance,
    )
