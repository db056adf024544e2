"""Compares captured packets with the interface's counters, and their sizes with the file's size."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from capture.conservation.check import Compared, Found, Rule
from capture.conservation.counters import light_nodes
from capture.conservation.evidence import Evidence, Span
from capture.conservation.segments import Traffic
from capture.tcpdump import SETTLE_NS
from contract.plan import Capture

CAPTURE_FRAMES = Rule(
    "capture-frames", "captured packets", "the frames that the interface counted",
    "figures of the capture lack packets, or have too many: take a shorter snap length or a narrower filter",
)  # fmt: skip
CAPTURE_FILTERED = Rule(
    "capture-filtered", "packets that a filter let through", "the frames that the interface counted",
    "figures of the capture have packets too many: report it as an error of vNET", "at most",
)  # fmt: skip
CAPTURE_MATCHES = Rule(
    "capture-matches", "packets that a filter let through", "those that match it, looked at once more",
    "the filter may have been changed, or means other frames in the kernel than in a file (VLAN tags)",
)  # fmt: skip
CAPTURE_RECEIVED = Rule(
    "capture-received", "packets that tcpdump captured or reports as lost",
    "those that the kernel's filter let through",
    "figures of the capture lack packets: take a shorter snap length or a narrower filter",
)  # fmt: skip
CAPTURE_ROWS = Rule(
    "capture-rows", "packets of the table", "those that tcpdump counted, and their layers the frames",
    "the pcap was cut or is damaged: repeat the run",
)  # fmt: skip
CAPTURE_BYTES = Rule(
    "capture-bytes", "sizes of packets with the headers of pcap", "the size of the pcap",
    "the pcap was cut or is damaged: repeat the run",
)  # fmt: skip
FILE_HEADER, PACKET_HEADER = 24, 16  # bytes of a pcap file, as tcpdump writes it (pcap-savefile(5))
UNITS = {"packets": "frames", "bytes": "bytes"}
TAG = 4  # bytes, of IEEE 802.1Q
EDGE_NS = 50_000_000  # in real time: between the kernel's stamp of a packet and the time of a sample


def sizes_fill_the_file(e: Evidence) -> Found:
    """The captured bytes of all packets and the pcap headers add up to the size of the file."""
    compared, left_out = [], []
    for capture in e.plan.captures:
        packets, size = e.packets(capture.name), e.pcap_bytes.get(capture.name)
        if packets is None or size is None:
            left_out.append("no pcap was reduced, or it was cut")
            continue
        rows, captured = (
            packets.select(pl.len(), pl.col("captured_bytes").cast(pl.Int64).sum()).collect().row(0)
        )
        table = FILE_HEADER + PACKET_HEADER * rows + int(captured or 0)
        compared.append(Compared(capture.name, table, size, "bytes"))
    return Found(compared, left_out or _none(e))


def table_has_packets(e: Evidence) -> Found:
    """The table has as many rows as tcpdump captured packets, and its layers add up to the frames."""
    compared, left_out = [], []
    for capture in e.plan.captures:
        name = capture.name
        packets, said = e.packets(name), (e.manifest.get("captures") or {}).get(name)
        if packets is None or said is None:
            left_out.append("no packets, or tcpdump did not say how many it captured")
            continue
        layers = pl.sum_horizontal(
            pl.col("^(eth|vlan|ip|transport|app|data|pad)_bytes$").cast(pl.Int64)
        ).sum()
        wire = pl.col("wire_bytes").cast(pl.Int64).sum()
        rows, of_layers, on_wire = packets.select(pl.len(), layers.alias("layers"), wire).collect().row(0)
        compared.append(Compared(name, rows, int(said["packets"]), "packets"))
        compared.append(Compared(f"{name}, layers", int(of_layers or 0), int(on_wire or 0), "bytes"))
    return Found(compared, left_out or _none(e))


def _none(e: Evidence) -> list[str]:
    return [] if e.plan.captures else ["the run has no capture point"]


def filter_matches(e: Evidence) -> Found:
    """The kernel's filter and tcpdump's own, of the same expression, pass the same packets."""
    if e.manifest.get("driver") == "fake":
        return Found(left_out=[e.unsuitable])
    compared, left_out = [], []
    for capture in e.plan.captures:
        name = capture.name
        packets, matching = e.packets(name), e.matching.get(name)
        if not capture.filter:
            continue
        if packets is None or matching is None:
            left_out.append("no pcap was reduced, or tcpdump did not count")
            continue
        cut = (pl.col("captured_bytes") < pl.col("wire_bytes")) | pl.col("vlan").is_not_null()
        rows, unlike = packets.select(pl.len(), cut.sum()).collect().row(0)
        if rows != matching and unlike:
            left_out.append("frames were cut or carry VLAN tags, which a filter sees otherwise in a file")
            continue
        compared.append(Compared(name, rows, matching, "packets"))
    return Found(compared, left_out or ([] if compared else ["no capture has a filter"]))


def kernel_has_packets(e: Evidence) -> Found:
    """tcpdump has all packets that the kernel passed, but for the kernel's last block, lost when it ends."""
    compared, left_out = [], []
    for capture in e.plan.captures:
        name = capture.name
        packets, said = e.packets(name), (e.manifest.get("captures") or {}).get(name) or {}
        if packets is None or said.get("received") is None:
            left_out.append("no packets, or the kernel's count of them was not recorded")
            continue
        figure = int(said["packets"]) + int(said["dropped_kernel"])
        compared.append(Compared(name, figure, int(said["received"]), "packets", _in_a_block(packets)))
    return Found(compared, left_out or _none(e))


def _in_a_block(packets: pl.LazyFrame) -> int:
    """The most packets in any two successive periods, each as long as the kernel keeps a block."""
    periods = packets.group_by(pl.col("t_ns") // SETTLE_NS).agg(pl.len()).sort("t_ns")
    counts = periods.select(pl.col("len").cast(pl.Int64)).collect()["len"]
    return int((counts + counts.shift(-1, fill_value=0)).max() or 0)  # type: ignore[arg-type]


def packets_are_frames(e: Evidence) -> Found:
    """Compares the packets of a capture without filter, between the first and the last sample, with the
    frames that the interface counted.
    """
    return _against_interface(e, filtered=False)


def filtered_are_frames(e: Evidence) -> Found:
    """A capture with a filter has at most the frames that the interface counted."""
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
        stretches = _stretches(counted.timed(steps), e.scenario)
        if stretches.is_empty():
            left_out.append("counters of the captured interface restarted in every interval")
        else:
            compared += _held_against(e, capture.name, stretches)
    one = "no capture has a filter" if filtered else "every capture has a filter"
    return Found(compared, left_out or _none(e) or ([] if compared else [one]))


def _why_not(e: Evidence, capture: Capture) -> str:
    if e.scenario is None or e.packets(capture.name) is None:
        return "no packets, or no phases of the scenario"
    return ""


class _Counted:
    """The growth of frames and bytes at capture points, from the samples of nodes and links."""

    def __init__(self, e: Evidence) -> None:
        self._traffic = Traffic(e)
        self._plan = e.plan

    def at(self, capture: Capture) -> pl.DataFrame | str:
        """sample, packets, bytes, whole; or why nothing counts just that interface.

        A node's port and a link's end show both ways, a bridge each frame that enters the segment, once.
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
        """With begin_ns and t_ns of each sample of the nodes."""
        return steps.join(self._traffic.times, on="sample", how="inner").sort("sample")


def _stretches(steps: pl.DataFrame, scenario: Span | None) -> pl.DataFrame:
    """first_ns, last_ns, packets, bytes of samples in a row whose counters did not begin anew.

    Until the end of the scenario: afterwards the capture is stopped, at a time that nobody wrote down.
    """
    end = scenario[1] if scenario is not None else 0
    kept = steps.filter(pl.col("whole") & (pl.col("t_ns") <= end)).sort("sample")
    broken = (pl.col("sample").diff() != 1).fill_null(True).cum_sum().alias("stretch")
    return kept.group_by(broken).agg(
        first_ns=pl.col("begin_ns").first(), last_ns=pl.col("t_ns").last(),
        packets=pl.col("packets").sum(), bytes=pl.col("bytes").sum(),
    ).sort("first_ns")  # fmt: skip


def _held_against(e: Evidence, name: str, stretches: pl.DataFrame) -> Iterator[Compared]:
    """Packets with the very time of a sample may be in it or not: so many may differ, in real time all within
    50 ms of it, and always as many as tcpdump says that it lost.
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
        packets_edge=doubtful.sum(), bytes_edge=size.filter(doubtful).sum(), longest=size.max(),
        tagged=(inside & pl.col("vlan").is_not_null()).sum(),
    ).collect().row(0, named=True)  # fmt: skip
    said = (e.manifest.get("captures") or {}).get(name) or {}
    lost = sum(int(said.get(k) or 0) for k in ("dropped_kernel", "dropped_interface"))
    # Inside the kernel a tag stands beside the frame (skb_vlan_tag): captures have it, counters may not.
    tags = TAG * int(kept["tagged"] or 0)
    allowed = {"packets": lost, "bytes": lost * int(kept["longest"] or 0) + tags}
    for unit, word in UNITS.items():
        tolerance = int(kept[f"{unit}_edge"] or 0) + allowed[unit]
        yield Compared(name, int(kept[unit] or 0), int(stretches[unit].sum()), word, tolerance)
