"""Checks the tables of captured packets against the counts of tcpdump and the kernel, and the size of the
pcap file.
"""

from __future__ import annotations

import polars as pl

from capture.conservation.check import Compared, Found, Rule
from capture.conservation.evidence import Evidence
from capture.tcpdump import SETTLE_NS

CAPTURE_MATCHES = Rule(
    "capture-matches", "packets that passed a filter", "those that match it when the filter is applied again",
    "the filter may have been changed, or means other frames in the kernel than in a file (VLAN tags)",
)  # fmt: skip
CAPTURE_RECEIVED = Rule(
    "capture-received", "packets that tcpdump captured or reports as lost",
    "those that passed the kernel's filter",
    "figures of the capture lack packets: take a shorter snap length or a narrower filter",
)  # fmt: skip
CAPTURE_ROWS = Rule(
    "capture-rows", "packets of the table", "those that tcpdump counted, and packets by layer the frames",
    "the pcap was cut or is damaged: repeat the run",
)  # fmt: skip
CAPTURE_BYTES = Rule(
    "capture-bytes", "sizes of packets with the headers of pcap", "the size of the pcap",
    "the pcap was cut or is damaged: repeat the run",
)  # fmt: skip
FILE_HEADER, PACKET_HEADER = 24, 16  # bytes of a pcap file, as tcpdump writes it (pcap-savefile(5))


def sizes_fill_the_file(e: Evidence) -> Found:
    """Compares, for each capture, the captured bytes of all packets plus the pcap headers with the size of
    the pcap file. Leaves out captures without a table or without a known file size.
    """
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
    return Found(compared, left_out)


def table_has_packets(e: Evidence) -> Found:
    """Compares, for each capture, the rows of its table with the packets that tcpdump counted, and the sum of
    all layers' bytes with the sum of the frames' bytes. Leaves out captures that lack the table or the count.
    """
    compared, left_out = [], []
    for capture in e.plan.captures:
        name = capture.name
        packets, said = e.packets(name), e.manifest.captures.get(name)
        if packets is None or said is None:
            left_out.append("no packets, or tcpdump reported no count of captured packets")
            continue
        layers = pl.sum_horizontal(
            pl.col("^(eth|vlan|ip|transport|app|data|pad)_bytes$").cast(pl.Int64)
        ).sum()
        wire = pl.col("wire_bytes").cast(pl.Int64).sum()
        rows, of_layers, on_wire = packets.select(pl.len(), layers.alias("layers"), wire).collect().row(0)
        compared.append(Compared(name, rows, int(said["packets"]), "packets"))
        compared.append(Compared(f"{name}, layers", int(of_layers or 0), int(on_wire or 0), "bytes"))
    return Found(compared, left_out)


def filter_matches(e: Evidence) -> Found:
    """Compares, for each capture with a filter, its packets with those that pass when tcpdump applies the
    filter again to the pcap file. Compares nothing in a run of the fake driver.

    Leaves a capture out if a number is missing. Also leaves it out if the numbers differ and the snaplen cut
    a frame or a frame carries a VLAN tag.
    """
    if e.manifest.driver == "fake":
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
    return Found(compared, left_out)


def kernel_has_packets(e: Evidence) -> Found:
    """Compares, for each capture, two counts: the packets that passed the kernel's filter, and the packets
    that tcpdump captured or reports as dropped by the kernel.

    Leaves out captures without a count. The tolerance is the number of packets in the kernel's last block,
    which is lost when tcpdump ends.
    """
    compared, left_out = [], []
    for capture in e.plan.captures:
        name = capture.name
        packets, said = e.packets(name), e.manifest.captures.get(name) or {}
        if packets is None or said.get("received") is None:
            left_out.append("no packets, or the kernel's count of them was not recorded")
            continue
        figure = int(said["packets"]) + int(said["dropped_kernel"])
        compared.append(Compared(name, figure, int(said["received"]), "packets", _in_a_block(packets)))
    return Found(compared, left_out)


def _in_a_block(packets: pl.LazyFrame) -> int:
    """Returns the highest number of packets in two successive periods that have packets; 0 without packets.
    Each period lasts SETTLE_NS, the time for which the kernel keeps a block.
    """
    periods = packets.group_by(pl.col("t_ns") // SETTLE_NS).agg(pl.len()).sort("t_ns")
    counts = periods.select(pl.col("len").cast(pl.Int64)).collect()["len"]
    return int((counts + counts.shift(-1, fill_value=0)).max() or 0)  # type: ignore[arg-type]
