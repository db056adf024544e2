"""The proof of paths: the way that routes ask for, against the one that packets take; of sampled pairs."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Sequence

from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import Tracer
from orchestrator.lab.judgement import Judgement, ProofResult, shown, verdict
from orchestrator.lab.probes import JITTER_TAIL
from orchestrator.lab.traceroute import FRAME_BYTES, SPACING_S, Traceroute, TracerouteResult
from orchestrator.model import Node, Plan
from orchestrator.model.family import family
from orchestrator.model.slack import Slack
from orchestrator.plan.paths import Path, Paths, pairs

MOST_PATHS = 24
Way = tuple[Node, str, Path, Path]  # from, address, there, back


def prove(plan: Plan, tracer: Tracer, slack: Slack) -> list[Judgement]:
    """Hops and round trip of sampled ways over routers; nothing where no route is the plan's."""
    paths = Paths.of(plan)
    ways = _sample([way for one, other in pairs(plan) for way in _ways(paths, one, other)])
    asked = [
        Traceroute(
            a.netns,
            address,
            len(there.nodes) - 1,
            SECOND + 2 * (there.delay_ns() + back.delay_ns()),
            _alone_ns(there, back),
        )
        for a, address, there, back in ways
    ]
    owner = {card.address: node.name for node in plan.nodes for card in node.interfaces}
    machines = {node.name for node in plan.nodes if node.vm is not None}
    found = tracer.traceroute(asked) if asked else []
    return [
        line
        for way, seen in zip(ways, found, strict=True)
        for line in (_hops(way, seen, owner), _time(way, seen, slack, machines))
    ]


def _alone_ns(there: Path, back: Path) -> int:
    """Twice the round trip where a frame takes a link longer than half the time to the next; else 0."""
    rates = [rate for path in (there, back) if (rate := path.bottleneck_bps)]
    slow = rates and 8 * FRAME_BYTES * 2 / min(rates) > SPACING_S
    return 2 * (there.delay_ns(FRAME_BYTES) + back.delay_ns(FRAME_BYTES)) if slow else 0


def _ways(paths: Paths, one: Node, other: Node) -> Iterator[Way]:
    for a, b in ((one, other), (other, one)):
        there, back = paths.between(a.name, b.name), paths.between(b.name, a.name)
        if a.vm is None and there is not None and back is not None and len(there.nodes) > 2:
            yield a, there.addresses[-1], there, back


def _sample(ways: Sequence[Way]) -> list[Way]:
    """All, or as many as are tried, evenly from the whole list."""
    count = min(len(ways), MOST_PATHS)
    return [ways[i * len(ways) // count] for i in range(count)]


def _name(way: Way) -> str:
    return f"{way[0].name} -> {way[2].nodes[-1]}"


def _hops(way: Way, seen: TracerouteResult, owner: dict[str, str]) -> Judgement:
    """Holds where every router answered in its turn, and the goal in the last."""
    asked = way[2].nodes[1:]
    gone = tuple(
        owner.get(seen.hops[n], seen.hops[n]) if n in seen.hops else "?" for n in range(1, len(asked) + 1)
    )
    judged: ProofResult = "holds" if gone == asked else "fails"
    reason = "" if gone == asked else f"asked by way of {', '.join(asked)}; went {', '.join(gone)}"
    count, answered = float(len(asked)), float(len(seen.hops))
    return Judgement(
        _name(way),
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


def _time(way: Way, seen: TracerouteResult, each: Slack, machines: Collection[str]) -> Judgement:
    """The median of some, against the sum of what the links are asked to delay; loss leaves fewer of them.

    What virtual machines on the way take to pass packets on is no link's: where it is
    longer, the proof cannot tell.
    """
    _, _, there, back = way
    frame_bytes = FRAME_BYTES + (20 if family(way[1]) == "IPv6" else 0)
    asked = float(there.delay_ns(frame_bytes) + back.delay_ns(frame_bytes))
    values = seen.round_trips_ns
    if not values:
        return Judgement(
            _name(way), "path", "round trip", asked, asked, None, None, None, "ns", 0, "cannot tell",
            "no echo came back",
        )  # fmt: skip
    middle, low, high = statistics.median(values), float(min(values)), float(max(values))
    # Every hop there and back wakes a kernel, and each link's jitter may lie on the same side.
    hops = len(there.nodes) + len(back.nodes) - 2
    slack = max(each.amount * hops, each.share * asked) + JITTER_TAIL * (there.jitter_ns + back.jitter_ns)
    judged = verdict(low, high, asked - slack, asked + slack)
    realised = f"asked {shown('ns', asked)}, realised {shown('ns', low, high)}, slack {shown('ns', slack)}"
    reason = "" if judged == "holds" else realised
    passed = [name for name in dict.fromkeys([*there.nodes[1:], *back.nodes[:-1]]) if name in machines]
    if passed and judged != "holds" and low >= asked - slack:
        judged = "cannot tell"
        reason = f"virtual machines on the way ({', '.join(passed)}) add {shown('ns', middle - asked)}"
    return Judgement(
        _name(way),
        "path",
        "round trip",
        asked,
        asked,
        middle,
        low,
        high,
        "ns",
        len(values),
        judged,
        reason,
        slack,
    )
