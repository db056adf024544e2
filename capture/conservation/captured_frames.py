"""Compares captured packets with the frames and bytes that the captured interface counted."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from capture.conservation.check import Compared, Found, Rule
from capture.conservation.counters import light_nodes
from capture.conservation.evidence import Evidence, Span
from capture.conservation.segments import Traffic
from contract.plan import Capture

CAPTURE_FRAMES = Rule(
    "capture-frames", "captured packets", "the frames that the interface counted",
    "figures of the capture lack packets, or have too many: take a shorter snap length or a narrower filter",
)  # fmt: skip
CAPTURE_FILTERED = Rule(
    "capture-filtered", "packets that passed a filter", "the frames that the interface counted",
    "figures of the capture have packets too many: report it as an error of vNET", "at most",
)  # fmt: skip
UNITS = {"packets": "frames", "bytes": "bytes"}
TAG = 4  # bytes of a VLAN tag (IEEE 802.1Q)
EDGE_NS = 50_000_000  # largest difference between a packet's timestamp and the time of a sample in real time


def packets_are_frames(e: Evidence) -> Found:
    """Compares the packets and bytes of each capture without a filter with the frames and bytes that its
    interface counted. The comparison covers the sample intervals until the scenario's end in which no counter
    restarted.

    In virtual time it also compares the sample interval that differs most.
    """
    return _against_interface(e, filtered=False)


def filtered_are_frames(e: Evidence) -> Found:
    """Checks that each capture with a filter has at most the frames and bytes that its interface counted. The
    check covers the sample intervals until the scenario's end in which no counter restarted.

    In virtual time it also checks the sample interval with the largest excess.
    """
    return _against_interface(e, filtered=True)


def _against_interface(e: Evidence, *, filtered: bool) -> Found:
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    counted = _Counted(e)
    compared: list[Compared] = []
    left_out = []
    for capture in e.plan.captures:
        if bool(capture.filter) != filtered:
            continue
        if why := _why_not(e, capture):
            left_out.append(why)
            continue
        steps = counted.at(capture)
        if isinstance(steps, str):
            left_out.append(steps)
            continue
        timed = counted.timed(steps)
        stretches = _stretches(timed, e.scenario)
        if stretches.is_empty():
            left_out.append("counters of the captured interface restarted in every interval")
            continue
        compared += _held_against(e, capture.name, stretches)
        if e.virtual:
            compared += _by_sample(e, capture.name, timed, most=filtered)
    return Found(compared, left_out)


def _why_not(e: Evidence, capture: Capture) -> str:
    if e.scenario is None or e.packets(capture.name) is None:
        return "no packets, or no phases of the scenario"
    return ""


class _Counted:
    """Computes how frames and bytes grow at capture points, from the samples of nodes and links."""

    def __init__(self, e: Evidence) -> None:
        self._traffic = Traffic(e)
        self._plan = e.plan

    def at(self, capture: Capture) -> pl.DataFrame | str:
        """Returns the growth of the capture point's counters in each sample interval (columns sample,
        packets, bytes, whole), or the reason why no counter covers this interface alone.

        A capture at a node or a link contains both directions; a capture at a bridge contains each frame
        once, when it enters the segment.
        """
        kind, _, target = capture.at.partition(" ")
        if kind == "segment":
            flow = self._traffic.of(target)
            return flow if isinstance(flow, str) else flow.into
        if kind == "link":
            return self._traffic.both_ways(target)
        node = next((n for n in light_nodes(self._plan) if n.name == target), None)
        cards = () if node is None else node.interfaces
        if not cards or not cards[0].port:
            return "a captured node has no port in the lab's kernel"
        return self._traffic.at_port(target, cards[0].segment)

    def timed(self, steps: pl.DataFrame) -> pl.DataFrame:
        """Adds begin_ns and t_ns, the times of the previous and of this sample of the nodes, to `steps`.
        Leaves out samples that the nodes do not have.
        """
        return steps.join(self._traffic.times, on="sample", how="inner").sort("sample")


def _stretches(steps: pl.DataFrame, scenario: Span | None) -> pl.DataFrame:
    """Joins consecutive samples whose counters did not restart into rows of first_ns, last_ns, packets and
    bytes. Without a scenario there are no rows.

    Leaves out samples after the scenario's end, because the capture stops then at an unrecorded time.
    """
    end = scenario[1] if scenario is not None else 0
    kept = steps.filter(pl.col("whole") & (pl.col("t_ns") <= end)).sort("sample")
    broken = (pl.col("sample").diff() != 1).fill_null(True).cum_sum().alias("stretch")
    return kept.group_by(broken).agg(
        first_ns=pl.col("begin_ns").first(), last_ns=pl.col("t_ns").last(),
        packets=pl.col("packets").sum(), bytes=pl.col("bytes").sum(),
    ).sort("first_ns")  # fmt: skip


def _held_against(e: Evidence, name: str, stretches: pl.DataFrame) -> Iterator[Compared]:
    """Yields the packets and the bytes of a capture within the stretches, each beside the interface's counts.

    The tolerance covers three differences. Packets may be on either side of a sample's time: in virtual time
    packets of exactly that time, in real time packets within 50 ms. tcpdump may report lost packets. A packet
    with a VLAN tag has 4 more bytes.
    """
    packets = e.packets(name)
    assert packets is not None
    edge = 0 if e.virtual else EDGE_NS
    spans = list(stretches.select("first_ns", "last_ns").iter_rows())
    t, size = pl.col("t_ns"), pl.col("wire_bytes").cast(pl.Int64)
    inside = pl.any_horizontal((t > first) & (t <= last) for first, last in spans)
    doubtful = pl.any_horizontal(t.is_between(at - edge, at + edge) for span in spans for at in span)
    kept = packets.select(
        packets=inside.sum(), bytes=size.filter(inside).sum(),
        packets_edge=doubtful.sum(), bytes_edge=size.filter(doubtful).sum(),
        tagged=(inside & pl.col("vlan").is_not_null()).sum(),
    ).collect().row(0, named=True)  # fmt: skip
    # The kernel keeps a tag outside the frame (skb_vlan_tag): captures contain the tag, and counters may
    # leave it out.
    allowed = _lost(e, name, packets)
    allowed["bytes"] += TAG * int(kept["tagged"] or 0)
    for unit, word in UNITS.items():
        tolerance = int(kept[f"{unit}_edge"] or 0) + allowed[unit]
        yield Compared(name, int(kept[unit] or 0), int(stretches[unit].sum()), word, tolerance)


def _lost(e: Evidence, name: str, packets: pl.LazyFrame) -> dict[str, int]:
    """Returns the number of packets that tcpdump reports as dropped by the kernel or the interface, and as
    their bytes this number times the longest captured packet.
    """
    said = e.manifest.captures.get(name) or {}
    lost = sum(int(said.get(k) or 0) for k in ("dropped_kernel", "dropped_interface"))
    longest = packets.select(pl.col("wire_bytes").max()).collect().item() if lost else 0
    return {"packets": lost, "bytes": lost * int(longest or 0)}


def _by_sample(e: Evidence, name: str, steps: pl.DataFrame, *, most: bool) -> Iterator[Compared]:
    """Yields the packets of the sample interval that differs most from the interface's frames, and the bytes
    of the interval that differs most in bytes.

    A wrong clock moves packets from one sample to the next, which changes the sums of a whole run only at
    its two ends. most: an interval counts as different only if the capture has more packets or bytes than
    the interface counted.
    """
    packets = e.packets(name)
    assert packets is not None
    end = e.scenario[1] if e.scenario is not None else 0
    kept = steps.filter(pl.col("whole") & (pl.col("t_ns") <= end)).sort("begin_ns")
    t, size = pl.col("t_ns"), pl.col("wire_bytes").cast(pl.Int64)
    rows = packets.select(t, wire=size, tagged=pl.col("vlan").is_not_null()).sort("t_ns").collect()
    spans = kept.select("sample", "begin_ns", last_ns="t_ns")
    placed = rows.join_asof(
        spans, left_on="t_ns", right_on="begin_ns", strategy="backward", allow_exact_matches=False
    ).filter(pl.col("t_ns") <= pl.col("last_ns"))
    seen = placed.group_by("sample").agg(
        packets_seen=pl.len().cast(pl.Int64), bytes_seen=pl.col("wire").sum(),
        tags=TAG * pl.col("tagged").sum(),
    )  # fmt: skip
    allowed, both = _lost(e, name, packets), kept.join(seen, on="sample", how="left").fill_null(0)
    for unit, word in UNITS.items():
        differ = pl.col(f"{unit}_seen") - pl.col(unit)
        differ = differ if most else differ.abs()
        worst = both.sort(differ - pl.col("tags") if unit == "bytes" else differ).row(-1, named=True)
        at_edge = rows.filter(pl.col("t_ns").is_in([worst["begin_ns"], worst["t_ns"]]))
        tolerance = allowed[unit] + (at_edge.height if unit == "packets" else int(at_edge["wire"].sum()))
        tolerance += int(worst["tags"]) if unit == "bytes" else 0
        yield Compared(f"{name}, one sample", int(worst[f"{unit}_seen"]), int(worst[unit]), word, tolerance)
