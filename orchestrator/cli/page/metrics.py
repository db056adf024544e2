"""Writes the data of watched labs as OpenMetrics, or in Prometheus's older text format; does no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from orchestrator.cli.page.flows import BUCKETS_S, Flows
from orchestrator.cli.page.rates import Links, Nodes

OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN = "text/plain; version=0.0.4; charset=utf-8"
SECOND_NS = 10**9
Labels = dict[str, str]
Sample = tuple[str, Labels, float]  # suffix, labels, value


@dataclass(frozen=True)
class Facts:
    """The last known state of a lab; `status` and `network` are those of its frames for the page."""

    lab: str
    up: bool
    status: dict[str, Any]
    network: dict[str, Any]
    warnings: int
    nodes: Nodes
    links: Links
    flows: Flows


@dataclass(frozen=True)
class Family:
    """One metric: its name, kind, unit, help text, and its samples of all labs."""

    name: str
    kind: str  # counter, gauge, histogram, info
    unit: str
    text: str
    samples: list[Sample]


def exposition(labs: Iterable[Facts], *, openmetrics: bool) -> str:
    """Returns the metrics of the labs as text, as OpenMetrics or in Prometheus's older format.

    The samples of counters end in `_total` in both formats.
    """
    lines: list[str] = []
    for family in families(list(labs)):
        kind = family.kind if openmetrics or family.kind != "info" else "gauge"
        typed = family.name + (_SUFFIX.get(family.kind, "") if not openmetrics else "")
        lines.append(f"# TYPE {typed} {kind}")
        if openmetrics and family.unit:
            lines.append(f"# UNIT {typed} {family.unit}")
        lines.append(f"# HELP {typed} {family.text}")
        for suffix, labels, value in family.samples:
            inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            lines.append(f"{family.name}{suffix}{{{inside}}} {_number(value)}")
    return "\n".join([*lines, "# EOF"] if openmetrics else lines) + "\n"


_SUFFIX = {"counter": "_total", "info": "_info"}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return repr(int(value)) if float(value).is_integer() else repr(float(value))


def families(labs: list[Facts]) -> list[Family]:
    """Returns all metrics, each with the samples of all labs."""
    return [*_labs(labs), *_nodes(labs), *_links(labs), *_flows(labs)]


def _labs(labs: list[Facts]) -> Iterator[Family]:
    yield Family("vnet_lab_up", "gauge", "", "1 if the lab answers, else 0.", [
        ("", {"lab": f.lab}, f.up) for f in labs
    ])  # fmt: skip
    yield Family("vnet_lab", "info", "", "The kernel that carries the lab, and its phase.", [
        ("_info", {"lab": f.lab, "kernel": _kernel(f), "phase": str(f.status.get("phase") or "")}, 1)
        for f in labs if f.up
    ])  # fmt: skip
    yield Family("vnet_lab_warnings", "gauge", "", "Warnings of the lab so far.", [
        ("", {"lab": f.lab}, f.warnings) for f in labs if f.up
    ])  # fmt: skip


def _kernel(facts: Facts) -> str:
    kernel = facts.status.get("kernel")
    return str(kernel.get("kind") if isinstance(kernel, dict) else kernel or "")


_NODE = (  # name, unit, place among the counters, divisor, text
    ("cpu_seconds", "seconds", 0, SECOND_NS, "CPU time of the node."),
    ("receive_bytes", "bytes", 1, 1, "Bytes received by the node's ports on bridges."),
    ("receive_packets", "", 2, 1, "Packets received by the node's ports on bridges."),
    ("transmit_bytes", "bytes", 3, 1, "Bytes sent by the node's ports on bridges."),
    ("transmit_packets", "", 4, 1, "Packets sent by the node's ports on bridges."),
)
_LINK = (
    ("transmit_bytes", "bytes", 0, "Bytes sent into the link."),
    ("transmit_packets", "", 1, "Packets sent into the link."),
    ("dropped_packets", "", 2, "Packets dropped by the link's queue, requested losses included."),
    ("overlimits", "", 3, "Times that the rate kept a packet waiting."),
)
_FLOW = (
    ("settled", "sent_messages", "Messages sent, and settled where that is guaranteed."),
    ("received", "received_messages", "Messages that arrived, once for every receiver."),
    ("unsettled", "failed_messages", "Messages of which sending failed."),
    ("lost", "lost_messages", "Messages not there 3 s after they were due, once for every receiver."),
)


def _nodes(labs: list[Facts]) -> Iterator[Family]:
    for name, unit, place, divisor, text in _NODE:
        yield Family(f"vnet_node_{name}", "counter", unit, text, [
            ("_total", {"lab": f.lab, "node": node}, numbers[place] / divisor)
            for f in labs for node, (_, numbers) in f.nodes.last.items()
        ])  # fmt: skip
    yield Family("vnet_node_memory_bytes", "gauge", "bytes", "Memory of the node.", [
        ("", {"lab": f.lab, "node": node}, numbers[5])
        for f in labs for node, (_, numbers) in f.nodes.last.items()
    ])  # fmt: skip


def _links(labs: list[Facts]) -> Iterator[Family]:
    for name, unit, place, text in _LINK:
        yield Family(f"vnet_link_{name}", "counter", unit, text, [
            ("_total", {"lab": f.lab, "link": link, "direction": side}, numbers[place])
            for f in labs for (link, side), (_, numbers) in f.links.last.items()
        ])  # fmt: skip
    yield Family("vnet_link_backlog_bytes", "gauge", "bytes", "Bytes that wait in the link's queue.", [
        ("", {"lab": f.lab, "link": link, "direction": side}, numbers[4])
        for f in labs for (link, side), (_, numbers) in f.links.last.items()
    ])  # fmt: skip
    known = [(f, name, link) for f in labs for name, link in f.network.get("links", {}).items()]
    yield Family("vnet_link_up", "gauge", "", "1 if the link is up, else 0.", [
        ("", {"lab": f.lab, "link": name}, not link["down"]) for f, name, link in known
    ])  # fmt: skip
    sides = [
        ({"lab": f.lab, "link": name, "direction": side}, link[side])
        for f, name, link in known for side in ("forward", "reverse")
    ]  # fmt: skip
    yield Family("vnet_link_delay_seconds", "gauge", "seconds", "Requested one-way delay of the link.", [
        ("", labels, way["delay_ns"] / SECOND_NS) for labels, way in sides
    ])  # fmt: skip
    yield Family("vnet_link_loss_ratio", "gauge", "ratio", "Requested loss of the link.", [
        ("", labels, way["loss"]) for labels, way in sides
    ])  # fmt: skip
    yield Family("vnet_link_rate_bytes_per_second", "gauge", "", "Requested rate of the link, if any.", [
        ("", labels, way["rate_bps"] / 8) for labels, way in sides if way["rate_bps"]
    ])  # fmt: skip


def _flows(labs: list[Facts]) -> Iterator[Family]:
    for key, name, text in _FLOW:
        yield Family(f"vnet_flow_{name}", "counter", "", f"{text} Counted while a page is open.", [
            ("_total", {"lab": f.lab, "class": of}, counted[key])
            for f in labs for of, counted in f.flows.totals.items()
        ])  # fmt: skip
    samples: list[Sample] = []
    for f in labs:
        for of, (counts, total_s) in f.flows.latencies.items():
            labels = {"lab": f.lab, "class": of}
            reached = 0
            for bound, count in zip([*map(str, BUCKETS_S), "+Inf"], counts, strict=True):
                reached += count
                samples.append(("_bucket", {**labels, "le": bound}, reached))
            samples += [("_count", labels, reached), ("_sum", labels, total_s)]
    text = "Arrival minus scheduled time. Counted while a page is open."
    yield Family("vnet_flow_latency_seconds", "histogram", "seconds", text, samples)
