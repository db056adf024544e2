"""Lists the metrics of summary.json: the unit of each, the columns that distinguish its values, and whether
a value is exact or estimated.

Expectations are checked against this list before a run. Imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# exact: a count or an extreme of this run. estimated: a mean, percentile or rate, judged by its interval.
Known = Literal["exact", "estimated"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of summary.json; `of` lists the columns that distinguish its values, such as link and
    direction.
    """

    unit: str
    of: tuple[str, ...]
    known: Known = "exact"
    series: bool = False  # has a value at each moment, too, for always, eventually and never


CLASS = ("traffic_class", "guarantee")
LINK = ("link", "direction")
QUEUE = (*LINK, "queue_class")
NODES = ("nodes", "group", "role")
POINT = ("capture",)
EVENT = ("traffic_class", "event")
FLOW = ("traffic_class", "flow")
TRIAL = ("stream", "frame_bytes")
PROGRAM = ("program",)


def _spread(name: str, what: str) -> dict[str, Metric]:
    """Returns the metrics `name`_mean, _deviation, _max and one for each of PERCENTILES, in the unit `what`,
    by traffic class and guarantee.
    """
    estimated = {f"{name}_{one}": Metric(what, CLASS, "estimated", True) for one in ("mean", *PERCENTILES)}
    others = {
        f"{name}_deviation": Metric(what, CLASS, "estimated"),
        f"{name}_max": Metric(what, CLASS, "exact", True),
    }
    return estimated | others


PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
_MESSAGES = (
    "scheduled", "sent", "settled", "unsent", "expected", "received", "lost", "duplicated", "reordered",
    "late", "unanswered",
)  # fmt: skip
_STACKS = (
    "buffer_full", "send_full", "fragments_lost", "nobody", "unroutable", "sent_again",
    "timeouts", "gave_up", "not_accepted",
)  # fmt: skip
_CONNECTIONS: tuple[tuple[str, str, Known], ...] = (
    ("handshake", "ms", "estimated"),
    ("smoothed_rtt", "ms", "estimated"),
    ("connection_seconds", "s", "estimated"),
    ("connection_rate", "Mbit/s", "estimated"),
)

_OF_PROGRAMS: Mapping[str, str] = {  # figures that programs print themselves; see reports/programs
    "requests": "requests", "failed": "requests", "refused": "requests",
    **{f"status_{digit}xx": "requests" for digit in (1, 2, 3, 4, 5)},
    "rate": "requests/s", "throughput": "Mbit/s", "bytes": "MB",
    "sent": "packets", "received": "packets", "lost": "packets", "loss": "% of packets",
    "retransmits": "segments", "latency_min": "ms", "latency_max": "ms",
}  # fmt: skip
_ESTIMATED_OF_PROGRAMS = (
    "jitter", *(f"latency_{one}" for one in ("mean", "deviation", "p75", "p95", *PERCENTILES))
)  # fmt: skip

REQUESTS = (*POINT, "protocol")
_OF_REQUESTS: Mapping[str, str] = {  # in captures; see reports/metrics/requests.py
    "requests": "requests", "unanswered": "requests", "errors": "requests",
    **{f"status_{digit}xx": "requests" for digit in (2, 3, 4, 5)},
    "rate": "requests/s", "latency_max": "ms", "unfollowed": "connections",
}  # fmt: skip

METRICS: Mapping[str, Metric] = {
    **_spread("latency", "ms"),
    **_spread("round_trip", "ms"),
    **{f"messages_{one}": Metric("messages", CLASS, "exact", True) for one in _MESSAGES},
    "guarantee_held": Metric("1 holds, 0 fails", CLASS),
    "interruption": Metric("ms", EVENT),
    "interruption_before": Metric("ms", EVENT),
    "interruption_until": Metric("s", EVENT),
    "interruption_lost": Metric("messages", EVENT),
    "interruption_unanswered": Metric("messages", EVENT),
    "link_carried": Metric("Mbit/s", LINK, "estimated", True),
    "link_peak": Metric("Mbit/s", LINK),
    "link_asked": Metric("Mbit/s", LINK),
    "link_goodput": Metric("Mbit/s", LINK),
    "link_utilisation": Metric("%", LINK, "estimated"),
    "link_utilisation_p99": Metric("%", LINK, "estimated"),
    "link_dropped": Metric("packets", LINK),
    "link_dropped_share": Metric("% of packets", LINK),
    "link_queue_p50": Metric("packets", LINK, "estimated"),
    "link_queue_p99": Metric("packets", LINK, "estimated"),
    "link_queue_max": Metric("packets", LINK, "exact", True),
    "queue_carried": Metric("Mbit/s", QUEUE, "estimated"),
    "queue_dropped": Metric("packets", QUEUE),
    "queue_marked": Metric("packets", QUEUE),
    "queue_p50": Metric("packets", QUEUE, "estimated"),
    "queue_max": Metric("packets", QUEUE),
    "cpu": Metric("% of a core", NODES, "estimated", True),
    "received": Metric("kB/s", NODES, "estimated", True),
    "sent": Metric("kB/s", NODES, "estimated", True),
    "memory": Metric("MB", NODES, "estimated", True),
    "received_minus_sent": Metric("kB/s", ("nodes",), "estimated"),
    "nodes": Metric("nodes", ("group", "role")),
    **{f"stack_{one}": Metric("events", ("group", "role")) for one in _STACKS},
    "core_busy": Metric("% of a core", ("machine",), "estimated"),
    "host_busy": Metric("% of the machine", ("machine",), "estimated"),
    "host_steal": Metric("% of the machine", ("machine",), "estimated"),
    "transfer_rate": Metric("Mbit/s", FLOW, "estimated"),
    "transfer_bytes": Metric("MB", FLOW),
    "transfer_retransmits": Metric("segments", FLOW),
    "transfer_lost": Metric("packets", FLOW),
    "transfer_rtt": Metric("ms", FLOW, "estimated"),
    "fairness": Metric("1 is even", ()),
    "fairness_by_second": Metric("1 is even", (), "estimated"),
    "share": Metric("%", ("traffic_class",)),
    "packets": Metric("packets", POINT),
    "wire_bytes": Metric("bytes", POINT),
    **{
        name: Metric("%", POINT, "estimated")
        for name in (
            "goodput_packets", "goodput_bytes", "retransmitted_packets", "arp_packets", "application_bytes",
        )
    },
    "overhead": Metric("% of wire bytes", POINT, "estimated"),
    "packet_size": Metric("% of packets", (*POINT, "bin")),
    **{name: Metric("Mbit/s", POINT, "estimated") for name in ("wire_rate", "payload_rate", "repeated_rate")},
    "protocol_packets": Metric("packets", (*POINT, "protocol")),
    "protocol_bytes": Metric("bytes", (*POINT, "protocol")),
    "protocol_share": Metric("% of bytes", (*POINT, "protocol")),
    "layer_share": Metric("% of bytes", (*POINT, "layer")),
    "connections": Metric("connections", POINT),
    "connection_retransmissions": Metric("segments", POINT),
    **{
        f"{name}_{at}": Metric(unit, POINT, known)
        for name, unit, known in _CONNECTIONS
        for at in ("p50", "p99")
    },
    "throughput": Metric("frames/s", TRIAL),
    "throughput_bits": Metric("Mbit/s", TRIAL),
    "throughput_of_line": Metric("% of the theoretical maximum", TRIAL),
    "offered_at_most": Metric("frames/s", TRIAL),
    "back_to_back": Metric("frames", TRIAL, "estimated"),
    "latency_tagged": Metric("us", TRIAL, "estimated"),
    "frame_loss": Metric("%", TRIAL),
    **{f"program_{name}": Metric(unit, PROGRAM) for name, unit in _OF_PROGRAMS.items()},
    **{f"program_{name}": Metric("ms", PROGRAM, "estimated") for name in _ESTIMATED_OF_PROGRAMS},
    **{f"app_{name}": Metric(unit, REQUESTS) for name, unit in _OF_REQUESTS.items()},
    **{f"app_latency_{name}": Metric("ms", REQUESTS, "estimated") for name in ("mean", *PERCENTILES)},
}  # fmt: skip
# Metrics of the whole run, which `during` and `after` cannot narrow.
_OF_THE_RUN = ("stack_", "fairness", "connection", "handshake", "smoothed", "program_", "app_")
WHOLE = frozenset(
    {"guarantee_held", "nodes", "share", "link_asked"}
    | {name for name in METRICS if name.startswith(_OF_THE_RUN)}
    | {name for name, metric in METRICS.items() if {"flow", "stream", "event"} & set(metric.of)}
)
# Names that expectations may use beside those of summary.json.
RECOVERY = "recovery"  # interruption_until of an event; zero where the event interrupted nothing
LINK_RATE = "throughput"  # with `link`: link_carried of the link's busier direction, or of `direction`
