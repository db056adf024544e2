"""A plan in groups: what 350 equal nodes have in common, said once; for a plan's text and drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..language.units import text_bps, text_ns, text_share
from ..model import Impairment, Link, Mqtt, Node, Plan, Software


@dataclass(frozen=True)
class GroupView:
    """Nodes of one group."""

    name: str
    nodes: tuple[Node, ...]

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(card.segment for card in self.nodes[0].interfaces)

    @property
    def addresses(self) -> str:
        """First and last address on the first segment."""
        first, last = self.nodes[0].interfaces[0].address, self.nodes[-1].interfaces[0].address
        return first if first == last else f"{first} - {last}"


@dataclass(frozen=True)
class LinkView:
    """Links that differ only in their node."""

    name: str
    links: tuple[Link, ...]
    a: str  # segment, node or group
    b: str


def groups(plan: Plan) -> list[GroupView]:
    """The plan's nodes by group, in the plan's order."""
    found: dict[str, list[Node]] = {}
    for node in plan.nodes:
        found.setdefault(node.group, []).append(node)
    return [GroupView(name, tuple(nodes)) for name, nodes in found.items()]


def link_views(plan: Plan) -> list[LinkView]:
    """The plan's links; those of one group's members with equal impairments are one view."""
    group_of = {node.name: node.group for node in plan.nodes}
    found: dict[tuple[str, str, Impairment, Impairment, str], list[Link]] = {}
    for link in plan.links:
        a = group_of.get(link.a, link.a) if link.kind == "access" else link.a
        name = link.name if link.kind == "nodes" else ""  # two such links may join the same nodes
        found.setdefault((a, link.b, link.forward.impairment, link.reverse.impairment, name), []).append(link)
    return [LinkView(_shared_name(links), tuple(links), a, b) for (a, b, *_), links in found.items()]


def _shared_name(links: Sequence[Link]) -> str:
    first, last = links[0].name, links[-1].name
    return first if first == last else f"{first} ... {last}"


def impairment_words(wanted: Impairment) -> list[str]:
    """An impairment as people write it, most telling first: ["10 ms ± 1 ms", "1 Gbit/s"]."""
    words = []
    if wanted.delay_ns:
        jitter = f" \u00b1 {text_ns(wanted.jitter_ns)}" if wanted.jitter_ns else ""
        words.append(text_ns(wanted.delay_ns) + jitter + _shape(wanted))
    if wanted.rate_bps:
        words.append(text_bps(wanted.rate_bps))
    if wanted.gemodel is not None:
        words.append("loss in bursts " + "/".join(text_share(share) for share in wanted.gemodel))
    for name in ("loss", "duplicate", "corrupt", "reorder"):
        share, correlation = getattr(wanted, name), getattr(wanted, f"{name}_correlation")
        if share:
            words.append(
                f"{name} {text_share(share)}" + (f" (corr. {text_share(correlation)})" if correlation else "")
            )
    return words


def _shape(wanted: Impairment) -> str:
    notes: list[str] = [] if wanted.distribution == "uniform" else [wanted.distribution]
    if wanted.delay_correlation:
        notes.append(f"corr. {text_share(wanted.delay_correlation)}")
    return f" ({', '.join(notes)})" if notes else ""


def software_words(software: Software) -> str:
    """One program in a few words."""
    if software.mqtt is not None:
        return f"{software.name}: MQTT {_mqtt_words(software.mqtt)}"
    if software.frames is not None:
        sizes, tests = software.frames.sizes, ", ".join(software.frames.tests)
        of = f"{sizes[0]} B" if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)} B"
        return f"{software.name}: frames of {of} to {software.frames.to}: {tests}"
    assert software.process is not None
    if software.role == "broker":
        return f"{software.name}: broker, port {software.process.ready.tcp_port}"
    command = " ".join(" ".join(software.process.argv).removeprefix("sh -c ").split())
    return f"{software.name}: {command if len(command) <= 48 else command[:45] + '...'}"


def _mqtt_words(client: Mqtt) -> str:
    words: list[str] = [client.version]
    if client.publish is not None:
        schedule = client.publish.schedule
        share = " together" if schedule.kind == "shared" and schedule.count > 1 else ""
        rate = f"{schedule.rate_per_s:g} /s{share}"
        words.append(f"publishes {client.publish.payload_bytes} B, {rate}, QoS {client.publish.qos}")
    words += [f"subscribes {s.topic}, QoS {s.qos}" for s in client.subscribe[:2]]
    return ", ".join(words)
