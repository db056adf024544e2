"""Writes a plan as text: tables in which the nodes of a group are one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from contract.plan import Capture, Event, Node, Plan, Prediction

from .. import queueing
from ..language.dates import date_text
from ..language.units import text_bps, text_bytes, text_ns, text_share
from .nics import NicUse, nic_uses
from .paths import Paths, pairs
from .placement.words import host_tables, of_hosts
from .summary import GroupView, groups, impairment_words, link_views, software_words, trace_words

MOST_TARGETS = 3
LONGEST_WAY = 80


def render(plan: Plan, *, steps: bool = False) -> str:
    """Returns the plan's text, without tables that have no row; with `steps`, also the exact input of `ip
    -batch` and `tc -batch`.
    """
    parts = [_head(plan), _segments(plan), _nodes(plan), _links(plan)]
    parts += [table(*one) for one in host_tables(plan)]
    parts += [_nics(plan), _captures(plan)]
    parts += [_events(plan), _paths(plan), _predictions(plan), _steps(plan), _notes(plan)]
    if steps:
        parts += [
            f"# {s.tool} -batch in {s.netns}{f' on {s.host}' if s.host else ''}: {s.reason}\n{s.text}"
            for s in plan.steps
        ]
    return "\n".join(part for part in parts if part)


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns aligned columns under a title; "" if there is no row."""
    lines = [list(header), *(list(row) for row in rows)]
    if len(lines) == 1:
        return ""
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return f"{title}\n" + "".join(f"  {line}\n" for line in text)


def _head(plan: Plan) -> str:
    values = ", ".join(f"{name}={value}" for name, value in plan.parameters.items())
    lines = [
        f"Lab {plan.lab} from {plan.topology}, seed {plan.seed}",
        f"  parameters: {values}" if values else "",
        f"  phases: ramp {text_ns(plan.ramp_ns)}, hold {text_ns(plan.hold_ns)}, "
        f"drain up to {text_ns(plan.drain_ns)}",
        f"  clock in virtual time: from {date_text(plan.clock_ns)}",
        f"  compared with: {plan.reference}, {plan.scenario}" if plan.reference else "",
    ]
    return "".join(f"{line}\n" for line in lines if line)


def _segments(plan: Plan) -> str:
    ports = Counter(card.segment for node in plan.nodes for card in node.interfaces)
    for link in plan.links:
        if link.kind == "segments":
            ports.update({link.a, link.b})
    rows = []
    for segment in plan.segments:
        ipv6 = "on" if segment.ipv6 else "off"
        rows.append(
            (
                segment.name,
                segment.bridge,
                ", ".join(segment.subnets),
                str(segment.mtu),
                ipv6,
                str(ports[segment.name]),
            )
        )
    return table("Segments", ("name", "bridge", "subnet", "MTU", "IPv6", "ports"), rows)


def _nodes(plan: Plan) -> str:
    rows: list[tuple[str, ...]] = []
    for group in groups(plan):
        first = group.nodes[0]
        words = [software_words(software, plan.flows) for software in first.software] or ["-"]
        rows.append(
            (
                _named(group),
                str(len(group.nodes)),
                ", ".join(group.segments),
                group.addresses,
                _limits(first),
                words[0],
            )
        )
        rows += [("", "", "", "", "", word) for word in words[1:]]
    return table("Nodes", ("nodes", "count", "segments", "addresses", "limits", "software"), rows)


def _named(group: GroupView) -> str:
    first, last = group.nodes[0].name, group.nodes[-1].name
    return first if first == last else f"{first} ... {last}"


def _limits(node: Node) -> str:
    parts = []
    for word, mhz, cores in (
        ("CPU <=", node.cpu_limit_mhz, node.cpu_limit_cores),
        ("CPU >=", node.cpu_reserve_mhz, node.cpu_reserve_cores),
    ):
        if mhz is not None:
            parts.append(f"{word} {mhz:g} MHz")
        if cores is not None:
            parts.append(f"{word} {cores:g} cores")
    if node.forward:
        parts.insert(0, "forwards")
    if node.vm is not None:
        parts.insert(0, f"VM {node.vm.image}, {text_bytes(node.vm.memory_bytes)}")
    parts += ["a core of its own"] * node.own_core
    if node.memory_limit_bytes is not None:
        parts.append(f"memory <= {text_bytes(node.memory_limit_bytes)}")
    if node.process_limit is not None:
        parts.append(f"processes <= {node.process_limit}")
    if node.disk_limit_bytes is not None:
        parts.append(f"disk <= {text_bytes(node.disk_limit_bytes)}")
    parts += [f"files of {node.image}"] * bool(node.image)
    parts += [f"reads {path}" for path in node.mounts_read] + [f"writes {path}" for path in node.mounts_write]
    parts += [f"reaches {text} outside" for text in node.outside]
    parts += [f"copies {path}" for path in node.mounts_copy]
    return ", ".join(parts) or "-"


def _links(plan: Plan) -> str:
    rows = []
    for view in link_views(plan):
        for way, direction in (("forward", view.links[0].forward), ("reverse", view.links[0].reverse)):
            wanted, medium = direction.impairment, view.links[0].kind == "medium"
            if medium and way == "reverse":
                continue
            ends = f"{view.a} -> {view.b}" if way == "forward" else f"{view.b} -> {view.a}"
            queue = queueing.queue_of(wanted)
            held = wanted.queue is None or (queue is not None and queue.kind == "netem")
            limit = f"{wanted.limit_packets} packets" if queue is not None and held else "-"
            limit += " (tbf: the sender's sockets wait)" if queue is not None and queue.kind == "tbf" else ""
            words = ", ".join(impairment_words(wanted)) or "plain wire"
            if direction.trace is not None:
                words = f"{trace_words(plan.traces[direction.trace])}; proven, and until it begins: {words}"
            if medium:
                ends, words = f"all of {view.a}", f"{words}, half duplex: one transmitter for all members"
            elif view.links[0].half_duplex:
                words += ", half duplex: one transmitter for both directions"
            rows.append((view.name if way == "forward" else "", str(len(view.links)), ends, words, limit))
    return table(
        "Links (delays are one way)", ("link", "count", "direction", "impairment", "queue limit"), rows
    )


def _paths(plan: Plan) -> str:
    """Returns the table of paths, in both directions, between the groups that `pairs` chooses; "" if no node
    forwards, since the table of links then shows all.
    """
    if not any(node.forward for node in plan.nodes):
        return ""
    paths = Paths.of(plan)
    found_later = any(s.role == "router" for node in plan.nodes for s in node.software)
    none = "as its routers find it" if found_later else "no route"
    rows = []
    for one, other in pairs(plan):
        for a, b in ((one.name, other.name), (other.name, one.name)):
            path = paths.between(a, b)
            way, delay, rate = none, "-", "-"
            if path is not None:
                way = ", ".join(path.nodes[1:-1]) or "direct"
                delay = text_ns(path.delay_ns())
                rate = text_bps(path.bottleneck_bps) if path.bottleneck_bps else "-"
            rows.append((a, b, way if len(way) <= LONGEST_WAY else f"{way[:LONGEST_WAY]}...", delay, rate))
    return table(
        "Paths (delay of a full frame, one way)", ("from", "to", "by way of", "delay", "bottleneck"), rows
    )


def _nics(plan: Plan) -> str:
    def end(use: NicUse) -> str:
        return "passed through to the guest" if use.kind == "vm" else f"{use.name} in {use.netns}"

    rows = [(use.place, use.asked, end(use)) for use in nic_uses(plan)]
    return table("NICs of the machine", ("where", "asked for", "becomes"), rows)


def _file(capture: Capture) -> str:
    parts = [f"to {capture.to}" if capture.to else "kept" if capture.keep else "until reduced"]
    parts += [f"at most {text_bytes(capture.limit_bytes)}"] if capture.limit_bytes else []
    return ", ".join([*parts, *([capture.compress] if capture.compress else [])])


def _captures(plan: Plan) -> str:
    rows = [
        (
            c.name,
            c.at,
            c.device,
            f"{c.snaplen} B",
            c.filter or "everything",
            _file(c),
        )
        for c in plan.captures
    ]
    return table("Captures", ("name", "at", "device", "snaplen", "filter", "pcap"), rows)


def _events(plan: Plan) -> str:
    rows = [(f"{e.phase} + {text_ns(e.at_ns)}", e.action, _targets(e), e.label) for e in plan.events]
    return table("Timeline", ("at", "action", "targets", "label"), rows)


def _targets(event: Event) -> str:
    names = ", ".join(event.targets[:MOST_TARGETS])
    more = len(event.targets) - MOST_TARGETS
    return f"{names} and {more} more" if more > 0 else names


def _predictions(plan: Plan) -> str:
    shown = _few(plan)
    return table("Predictions", ("what", "where", "value"), [(p.name, p.scope, amount(p)) for p in shown])


def _notes(plan: Plan) -> str:
    rows = [(note.place, note.text, note.remedy) for note in plan.notes]
    return table("Look before you trust it", ("where", "what", "remedy"), rows)


def _few(plan: Plan) -> list[Prediction]:
    """Returns the predictions to show: one for each view of equal links, without those that the tables of
    hosts show.
    """
    alike = {link.name for view in link_views(plan) for link in view.links[1:]}
    elsewhere = of_hosts(plan)
    return [p for p in plan.predictions if p.scope.split(" ")[0] not in alike and p.scope not in elsewhere]


def amount(prediction: Prediction) -> str:
    """Returns a predicted value as text, with a unit that suits its size; "no delay added" for a round trip
    of 0.
    """
    value, unit = prediction.value, prediction.unit
    if prediction.name == "round trip" and value == 0:
        return "no delay added"
    if unit == "s":
        return f"{value * 1e3:.4g} ms" if value < 1 else f"{value:.4g} s"
    if unit == "share":
        return text_share(float(f"{value:.2g}"))
    if unit == "B":
        return text_bytes(value)
    return text_bps(value) if unit == "bit/s" else f"{value:,.0f} {unit}".replace(",", " ")


def _steps(plan: Plan) -> str:
    rows: dict[tuple[str, str], list[int]] = {}
    for step in plan.steps:
        rows.setdefault((step.tool, step.reason), []).append(step.text.count("\n"))
    listed = [(f"{tool} -batch", str(len(n)), str(sum(n)), reason) for (tool, reason), n in rows.items()]
    return table("Steps", ("tool", "calls", "lines", "what"), listed)
