"""Captures: packets against the counters of the interface, their sizes against the bytes of the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from capture.conservation.check import Compared, Found, Rule
from capture.conservation.counters import light_nodes, link_steps, node_steps
from capture.conservation.evidence import Evidence

CAPTURE_FRAMES = Rule(
    "capture-frames", "captured packets", "the frames that the interface counted",
    "figures of the capture lack packets, or have too many: take a shorter snap length or a narrower filter",
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
EDGE_NS = 50_000_000  # in real time: between the kernel's stamp of a packet and the time of a sample


def sizes_fill_the_file(e: Evidence) -> Found:
    """The captured bytes of all packets, with the headers of pcap, are the file that they were read from."""
    compared, left_out = [], []
    for capture in e.plan.get("captures", ()):
        packets, size = e.packets(capture["name"]), e.pcap_bytes.get(capture["name"])
        if packets is None or size is None:
            left_out.append("no pcap was reduced, or it was cut")
            continue
        rows, captured = (
            packets.select(pl.len(), pl.col("captured_bytes").cast(pl.Int64).sum()).collect().row(0)
        )
        table = FILE_HEADER + PACKET_HEADER * rows + int(captured or 0)
        compared.append(Compared(capture["name"], table, size, "bytes"))
    return Found(compared, left_out or _none(e))


def table_has_packets(e: Evidence) -> Found:
    """As many rows as tcpdump said that it captured, and layers that add up to the frames."""
    compared, left_out = [], []
    for capture in e.plan.get("captures", ()):
        name = capture["name"]
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
    return [] if e.plan.get("captures") else ["the run has no capture point"]


def packets_are_frames(e: Evidence) -> Found:
    """What a capture holds between the first and the last sample, against what the interface counted."""
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    counted = _Counted(e)
    compared: list[Compared] = []
    left_out = []
    for capture in e.plan.get("captures", ()):
        if why := _why_not(e, capture):
            left_out.append(why)
            continue
        steps = counted.at(capture)
        if steps is None or steps.is_empty():
            left_out.append("no counters of the captured interface")
        elif not steps["whole"].all():
            left_out.append("counters of the captured interface began anew")
        else:
            compared += _held_against(e, capture["name"], steps)
    return Found(compared, left_out or _none(e))


def _why_not(e: Evidence, capture: dict[str, Any]) -> str:
    if capture.get("filter"):
        return "a capture has a filter"
    if e.scenario is None or e.packets(capture["name"]) is None:
        return "no packets, or no phases of the scenario"
    return ""


class _Counted:
    """The growth of frames and bytes at capture points, from the samples of nodes and links."""

    def __init__(self, e: Evidence) -> None:
        self._plan = e.plan
        self._nodes = node_steps(e)
        self._links = None if self._nodes is None else link_steps(e, self._nodes)

    def at(self, capture: dict[str, Any]) -> pl.DataFrame | None:
        """begin_ns, t_ns, packets, bytes, whole by sample; None where nothing counts just that interface."""
        kind, _, target = str(capture.get("at", "")).partition(" ")
        if kind == "node":
            return self._at_node(target)
        link = next((li for li in self._plan.get("links", ()) if li["name"] == target), None)
        plain = link is not None and link["kind"] != "medium" and not link["forward"].get("shared")
        if kind != "link" or not plain or self._links is None:
            return None  # a segment's frames come from all its ports
        return _per_sample(self._links.filter(link=target), pl.col("packets"), pl.col("bytes"))

    def _at_node(self, name: str) -> pl.DataFrame | None:
        node = next((n for n in light_nodes(self._plan) if n["name"] == name), None)
        if node is None or self._nodes is None:
            return None
        devices = {i["name"].partition(".")[0] for i in node.get("interfaces", ())}
        if len(devices) != 1:
            return None
        packets, carried = (
            pl.col("rx_packets") + pl.col("tx_packets"),
            pl.col("rx_bytes") + pl.col("tx_bytes"),
        )
        return _per_sample(self._nodes.filter(node=name), packets, carried)


def _per_sample(steps: pl.DataFrame, packets: pl.Expr, carried: pl.Expr) -> pl.DataFrame:
    return steps.group_by("sample").agg(
        pl.col("begin_ns").first(), pl.col("t_ns").first(), packets=packets.sum(), bytes=carried.sum(),
        whole=pl.col("whole").all(),
    ).sort("sample")  # fmt: skip


def _held_against(e: Evidence, name: str, steps: pl.DataFrame) -> Iterator[Compared]:
    """Over the samples of the scenario: afterwards the capture is stopped, at a time that nobody wrote down.

    Of packets with the very time of a sample nobody knows whether it counts them: these may differ, in real
    time all within 50 ms of it, and always as many as tcpdump says that it lost.
    """
    assert e.scenario is not None
    within = steps.filter(pl.col("t_ns") <= e.scenario[1])
    packets = e.packets(name)
    if within.is_empty() or packets is None:
        return
    first, last = int(within["begin_ns"][0]), int(within["t_ns"][-1])
    edge = 0 if e.virtual else EDGE_NS
    t, size = pl.col("t_ns"), pl.col("wire_bytes").cast(pl.Int64)
    inside = (t > first) & (t <= last)
    doubtful = t.is_between(first - edge, first + edge) | t.is_between(last - edge, last + edge)
    kept = packets.select(
        packets=inside.sum(), bytes=size.filter(inside).sum(),
        packets_edge=doubtful.sum(), bytes_edge=size.filter(doubtful).sum(), longest=size.max(),
    ).collect().row(0, named=True)  # fmt: skip
    said = (e.manifest.get("captures") or {}).get(name) or {}
    lost = sum(int(said.get(k) or 0) for k in ("dropped_kernel", "dropped_interface"))
    allowed = {"packets": lost, "bytes": lost * int(kept["longest"] or 0)}
    for unit, word in UNITS.items():
        slack = int(kept[f"{unit}_edge"] or 0) + allowed[unit]
        yield Compared(f"{name}", int(kept[unit] or 0), int(within[unit].sum()), word, slack)
