"""Groups equal nodes and links of a plan, so that its text and drawing show 350 equal nodes once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contract.plan import Band, Flow, Impairment, Link, Node, Plan, Slot, Software, State, Trace

from ..language.units import text_bps, text_ns, text_share
from ..queueing import queue_kind_of
from ..software.registry import KINDS


@dataclass(frozen=True)
class GroupView:
    """The nodes of one group, as one row or box."""

    name: str
    nodes: tuple[Node, ...]

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(card.segment for card in self.nodes[0].interfaces)

    @property
    def addresses(self) -> str:
        """Returns the addresses of the first and the last node on the first segment as text, separately for
        both families.
        """
        ends = (self.nodes[0].interfaces[0].addresses, self.nodes[-1].interfaces[0].addresses)
        pairs = zip(*ends, strict=True)
        return ", ".join(first if first == last else f"{first} - {last}" for first, last in pairs)


@dataclass(frozen=True)
class LinkView:
    """Links that `link_views` shows as one: they have equal impairments and traces, and the same ends if the
    nodes of a group count as one end.
    """

    name: str
    links: tuple[Link, ...]
    a: str  # name of the segment, node or group
    b: str


def groups(plan: Plan) -> list[GroupView]:
    """Returns the plan's nodes by group, in the plan's order."""
    found: dict[str, list[Node]] = {}
    for node in plan.nodes:
        found.setdefault(node.group, []).append(node)
    return [GroupView(name, tuple(nodes)) for name, nodes in found.items()]


def link_views(plan: Plan) -> list[LinkView]:
    """Returns the plan's links as views. Links between the same ends with equal impairments and traces are
    one view; for an access link, the node's group is the end. A link between two nodes is a view of its own.
    """
    group_of = {node.name: node.group for node in plan.nodes}
    found: dict[tuple[object, ...], list[Link]] = {}
    for link in plan.links:
        a = group_of.get(link.a, link.a) if link.kind == "access" else link.a
        name = link.name if link.kind == "nodes" else ""  # two links between nodes may join the same groups
        ways = [(way.impairment, way.trace) for way in (link.forward, link.reverse)]
        found.setdefault((a, link.b, *ways, name), []).append(link)
    return [
        LinkView(_shared_name(links), tuple(links), str(a), str(b)) for (a, b, *_), links in found.items()
    ]


def _shared_name(links: Sequence[Link]) -> str:
    first, last = links[0].name, links[-1].name
    return first if first == last else f"{first} ... {last}"


def impairment_words(wanted: Impairment) -> list[str]:
    """Returns an impairment as short texts, delay and rate first: ["10 ms ± 1 ms", "1 Gbit/s"]. Values of 0,
    backpressure and the queue limit are left out.
    """
    words = []
    if wanted.delay_ns:
        jitter = f" \u00b1 {text_ns(wanted.jitter_ns)}" if wanted.jitter_ns else ""
        words.append(text_ns(wanted.delay_ns) + jitter + _shape(wanted))
    if wanted.rate_bps:
        words.append(text_bps(wanted.rate_bps))
    if wanted.queue is not None:
        words.append(queue_words(wanted))
    if wanted.gemodel is not None:
        words.append("loss in bursts " + "/".join(text_share(share) for share in wanted.gemodel))
    for name in ("loss", "duplicate", "corrupt", "reorder"):
        share, correlation = getattr(wanted, name), getattr(wanted, f"{name}_correlation")
        if share:
            words.append(
                f"{name} {text_share(share)}" + (f" (corr. {text_share(correlation)})" if correlation else "")
            )
    if wanted.slot is not None:
        words.append(_slot_words(wanted.slot))
    return words


def _slot_words(slot: Slot) -> str:
    apart = _range([text_ns(slot.min_ns), text_ns(slot.max_ns)])
    if slot.table is not None:
        apart += f" ({text_ns(slot.mean_ns)} in the mean, by a file)"
    most = [f"{n} {what}" for n, what in ((slot.packets, "packets"), (slot.bytes, "bytes")) if n]
    return f"slots {apart} apart" + (f" of at most {' and '.join(most)}" if most else "")


def queue_words(wanted: Impairment) -> str:
    """Returns the impairment's queue as text: its kind, and its bands or the settings that its kind prints:
    `prio (control: PCP 6, 7; rest)`, `red`. "" without a queue.
    """
    queue_kind = queue_kind_of(wanted)
    if wanted.queue is None or queue_kind is None:
        return ""
    details = "; ".join(_band_words(band) for band in wanted.queue.bands) or queue_kind.words(wanted)
    return wanted.queue.kind + (f" ({details})" if details else "")


def trace_words(trace: Trace) -> str:
    """Returns a trace as text: `trace lte.csv: 120 states over 60 s, repeated: 1 Mbit/s to 20 Mbit/s, 10 ms
    to 40 ms`.
    """
    length = f"{len(trace.states)} states over {text_ns(trace.length_ns)}"
    if trace.bin_ns:
        done = "packets counted" if trace.states[0].delay_ns is None else "round trips put together"
        length += f" ({done} in bins of {text_ns(trace.bin_ns)})"
    end = "repeated" if trace.repeat else "then its last state"
    states = trace.states
    ranges = [
        _range([text_bps(s.rate_bps) for s in _by(states, "rate_bps") if s.rate_bps is not None]),
        _range([text_ns(s.delay_ns) for s in _by(states, "delay_ns") if s.delay_ns is not None]),
        _range([f"loss {text_share(s.loss)}" for s in _by(states, "loss") if s.loss is not None]),
    ]
    return f"trace {trace.file}: {length}, {end}: " + ", ".join(filter(None, ranges))


def _by(states: Sequence[State], field: str) -> list[State]:
    return sorted((s for s in states if getattr(s, field) is not None), key=lambda s: getattr(s, field))


def _range(ordered: list[str]) -> str:
    if not ordered:
        return ""
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def _band_words(band: Band) -> str:
    by = (("PCP", band.pcp), ("DSCP", band.dscp), ("port", band.ports))
    words = [f"{name} {', '.join(map(str, values))}" for name, values in by if values]
    if band.rate_bps:
        words.append(f"{text_bps(band.rate_bps)} to {text_bps(band.ceil_bps)}")
    if band.ahead:
        words.append("ahead of the others")
    return f"{band.name}: {', '.join(words)}" if words else band.name


def _shape(wanted: Impairment) -> str:
    notes: list[str] = [] if wanted.distribution == "uniform" else [wanted.distribution]
    if wanted.delay_correlation:
        notes.append(f"corr. {text_share(wanted.delay_correlation)}")
    return f" ({', '.join(notes)})" if notes else ""


def software_words(software: Software, flows: Sequence[Flow]) -> str:
    """Returns a piece of software as its name and the short text of its kind; `flows` are the plan's."""
    own = [f for f in flows if software.session is not None and f.sender == software.session.endpoint]
    return f"{software.name}: {KINDS[software.kind].words(software, own)}"
