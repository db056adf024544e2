"""Defines the Parquet tables of a run directory: their columns with type, unit and meaning.

`python -m contract.page` makes docs/contracts/tables.md from it. The reducer defines the tables of capture
points (docs/contracts/packets.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["u8", "u32", "i64", "f64", "str", "bool", "list[str]"]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: Kind
    unit: str = ""
    meaning: str = ""
    null: bool = False  # some rows have no value in this column
    absent: bool = False  # runs in which no row has a value lack the column


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    rows: str  # what a row means, and which runs lack the table
    columns: tuple[Column, ...]
    notes: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that this table has in every run; without those marked `absent`."""
        return tuple(column.name for column in self.columns if not column.absent)


def _each(
    names: str, kind: Kind, unit: str = "", meaning: str = "", null: bool = False
) -> tuple[Column, ...]:
    return tuple(Column(name, kind, unit, meaning, null) for name in names.split())


C = Column
AT = C("t_ns", "i64", "ns", "Unix time on the lab's clock")
FLOW = (
    C("flow", "u32", "", "number of the flow: its place in the plan's `flows`"),
    C("name", "str", "", "name of the flow"),
    C("class", "str", "", "the flow's traffic class"),
)
MAYBE_FLOW = tuple(C(one.name, one.kind, "", one.meaning, null=True) for one in FLOW)
TRIALS = (
    *_each("trial t_ns", "i64"), *_each("stream test", "str"), *_each("size repetition", "i64"),
    C("rate_fps", "f64", "frames/s", "offered; 0: back to back"),
    *_each("count sent refused late_ns tx_first_ns tx_last_ns received duplicates reordered", "i64"),
    *_each("corrupted foreign early ring_dropped rx_first_ns rx_last_ns", "i64"),
    *_each("tagged_ns latency_min_ns latency_mean_ns latency_max_ns", "i64", "ns", null=True),
    C("verdict", "str", "", "passed, lost, queued, tester"),
)  # fmt: skip

MESSAGES = """The plan (`flows`, `receivers`) states the receivers of a message; this table does not use a
protocol's own addresses. An agent's endpoint that does not listen counts as a receiver from its record
`subscribed` on. A listening end and a user's program count from the start, or, if the program writes
`listening`, from then on. Records of flows that are not in the plan, and unexpected arrivals, are left out,
with a warning.

Delivery guarantees: `capture.delivery.verdicts(messages, plan) -> list[Verdict]`, one per class and
guarantee, in the order of the plan. Judged are messages that were sent and settled, or that arrived without
being settled; if loss is allowed, all sent messages. A request is lost if it neither arrived nor was
answered, and unanswered if it got no reply."""

TABLES = {table.name: table for table in (
    Table("messages", "a message and expected receiver", (
        *FLOW,
        C("pattern", "str", "", "`publish`, `request`, `push`, `stream`"),
        C("sender", "str", "", "endpoint"),
        C("receiver", "str", "", "endpoint or group (`shared` in the plan); null: no receiver", null=True),
        C("seq", "i64", "", "number of the message in the flow, from 0"),
        C("bytes", "i64", "B", "bytes of payload"),
        C("scheduled_ns", "i64", "ns", "scheduled time"),
        C("sent_ns", "i64", "ns", "time at which the transport accepted it", null=True),
        C("settled_ns", "i64", "ns", "time of its acknowledgement, or of the last reply", null=True),
        C("attempts", "i64", "", "number of sends"),
        C("outcome", "str", "", "[as recorded](records.md)"),
        C("received_ns", "i64", "ns", "first arrival; null if it never arrived", null=True),
        C("copies", "i64", "", "arrivals"),
        C("reordered", "bool", "", "arrived after a later message of its flow"),
        C("latency_ns", "i64", "ns", "received - scheduled", null=True),
        C("replied_ns", "i64", "ns", "first reply of this receiver", null=True),
        C("replies", "i64", "", "number of replies"),
        C("round_trip_ns", "i64", "ns", "replied - scheduled", null=True),
        C("covered", "bool", "", "false if the message was in flight when the receiver's session broke, or, "
          "except for published messages, when the sender's session or its connection to the receiver broke; "
          "also for a message published and never settled, if the sender's session ended later"),
        C("guarantee", "str", "", "name of the delivery guarantee", null=True),
        C("late", "bool", "", "the message (for a request: its reply) missed the deadline, late or lost; "
          "null without a deadline", null=True),
    ), MESSAGES),
    Table("sessions", "a step in a session's life, of records C", (
        C("endpoint", "str"), C("what", "str"), AT, C("detail", "str"),
        C("peer", "str", "", "peer of the connection; empty for a step of the session itself"),
    )),
    Table("transfers", "a count of a greedy or paced flow by one of its ends, of records B", (
        *FLOW, C("sender", "str"), C("receiver", "str", null=True),
        C("endpoint", "str", "", "end that counted"),
        C("leg", "u8", "", "0: counted by the sender, 1: by the receiver"), AT,
        C("bytes", "i64", "B", null=True),
        *_each("packets lost retransmits", "i64", null=True), C("rtt_ns", "i64", "ns", null=True),
        C("bps", "f64", "bit/s", "since the record before; null for the first", null=True),
    )),
    Table("windows", "a look at a TCP connection's congestion window, of records W, where there are some", (
        *FLOW, C("sender", "str"), C("stream", "i64", "", "the flow's connections, from 0"), AT,
        C("segments", "i64", "", "the window"), C("bytes", "i64", "B", "segments x segment_bytes"),
        C("threshold", "i64", "", "threshold of slow start, in segments", null=True),
        C("segment_bytes", "i64", "B"),
        C("rtt_ns", "i64", "ns", "smoothed"),
    )),
    Table("spans", "a span of a program's activity, from records P, if any exist", (
        C("endpoint", "str"), C("what", "str"), *MAYBE_FLOW, C("seq", "i64", null=True), AT,
        C("duration_ns", "i64", "ns"),
    )),
    Table("nodes", "a sample of a node", (
        AT, C("node", "str"), C("cpu_ns", "i64", "ns", "counter"),
        *_each("rx_bytes rx_packets tx_bytes tx_packets", "i64", "", "counter, as the node sees it"),
        C("memory_bytes", "i64", "B"), C("group", "str", null=True),
        C("cpu_share", "f64", "", "CPU time as a share of one core, over the interval before", null=True),
        *_each("rx_bps tx_bps", "f64", "bit/s", null=True),
        *_each("rx_pps tx_pps", "f64", "packets/s", null=True),
    )),
    Table("stacks", "a counter of a node's network stack that moved; earlier versions have no such table", (
        C("node", "str"), C("counter", "str", "", "as `nstat` names it"),
        C("value", "i64", "", "its growth from the programs' start to the end of the drain"),
        C("group", "str", null=True),
    )),
    Table("disks", "the disk traffic of a node; absent if neither kernel nor libvirt counts it: in virtual "
          "time, in the lab kernel, on several hosts", (
        C("node", "str"),
        C("disk", "str", "", "libvirt's name of a machine's disk; `processes`: all disks together, for a "
          "light node's processes"),
        *_each("read_bytes written_bytes", "i64", "B", "below the page cache, to the end: from the programs' "
               "start of a light node, from the readiness of a machine"),
        *_each("reads writes", "i64", "", "requests of machines", null=True),
        C("memory", "bool", "", "the node's own directory (of a machine: the disk's file) is in memory "
          "(tmpfs); a light node's writes there do not count", null=True),
        C("group", "str", null=True),
    )),
    Table("links", "a sample of a link's direction, or of a class of its queue", (
        AT, C("link", "str"),
        C("direction", "str", "", "forward, reverse; in half duplex these count each end's frames, and "
          "`both` the shared queue; a segment's medium, whose link has the segment's name, has only `both`"),
        *_each("bytes packets dropped overlimits", "i64", "", "counter; a class's bytes are part of the "
               "direction's; a tin's are those that arrived", null=True),
        C("backlog_bytes", "i64", "B"), C("backlog_packets", "i64"),
        C("class", "str", "", "band, class or tin of its queue; null: the whole direction", null=True),
        C("marked", "i64", "", "packets of a class marked by ECN", null=True),
        C("bps", "f64", "bit/s", "rate at which packets left", null=True),
        C("pps", "f64", "packets/s", "rate at which packets left", null=True),
        *(C(f"requested_{name}", "f64", unit, "the mean of the trace over the interval before; only where "
            "links are played from traces (earlier versions: asked_...)", null=True, absent=True)
          for name, unit in (("bps", "bit/s"), ("delay_ns", "ns"), ("loss", ""))),
    )),
    Table("impairments", "a change of a link that is played from a trace, in plans with traces", (
        AT, C("planned_ns", "i64", "ns", "scheduled time"), C("link", "str"), C("direction", "str"),
        C("rate_bps", "i64", "bit/s", "0: an outage; null: no rate", null=True), C("delay_ns", "i64", "ns"),
        C("loss", "f64"),
    )),
    Table("host", "a sample of the kernel that the lab runs in, or of its machine", (
        AT, C("where", "str", "", "lab, outer, or a host's name"),
        *_each("busy_share steal_share", "f64", null=True),
        C("load1", "f64"), C("memory_available_bytes", "i64", "B"), C("cores", "i64"),
    )),
    Table("disturbance", "a second of heartbeats, in real time: as raw/disturbance*.csv (earlier versions: "
          "`strain.parquet`)", (
        *_each("t_ns beats late_ns worst_ns stalled_ns suspended_ns set_ns", "i64"),
        *_each("periods throttled throttled_ns ran_ns waited_ns slices pressure_ns cores cores_ns idle_ns "
               "steal_ns own_core_ns own_steal_ns heat_ns stopped", "i64", null=True),
        C("where", "str", "", "lab, outer"),
    )),
    Table("events", "a timeline event as applied, or a change by hand", (
        AT, C("planned_ns", "i64", "ns", "scheduled time"), C("phase", "str"), C("action", "str"),
        C("targets", "list[str]"), C("args", "str", "", "JSON"), C("ok", "bool"),
        C("error", "str", null=True),
        C("label", "str"),
    )),
    Table("trials", "a trial of a path after RFC 2544, of `frames` software", (
        *TRIALS, C("lost", "i64", "frames", "sent - received - ring_dropped"),
        *_each("offered_fps delivered_fps", "f64", "frames/s", "measured rates", null=True),
    )),
    Table("latencies", "a bucket of a trial's latencies", (
        C("trial", "i64"), C("from_ns", "i64", "ns"), C("to_ns", "i64", "ns", "excluded"), C("frames", "i64"),
    )),
    Table("findings", "the result of a search of trials", (
        C("stream", "str"), C("test", "str"), C("size", "i64", "B"), C("repetition", "i64"),
        C("value", "f64"),
        C("unit", "str"), C("limit", "str", "", "line, path, tester, length (of a burst)"),
        C("top_fps", "f64"),
    )),
)}  # fmt: skip
