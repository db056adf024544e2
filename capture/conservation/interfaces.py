"""Compares the counters of nodes' interfaces with those of the links at these interfaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from capture.conservation.check import WRONG, Compared, Found, Rule
from capture.conservation.counters import link_steps, node_steps
from capture.conservation.evidence import Evidence
from capture.conservation.ports import ports

NODE_LINKS = Rule("node-links", "frames and bytes of nodes' interfaces", "those of their links", WRONG)
NODE_SOME_LINKS = Rule(
    "node-some-links", "frames and bytes of nodes that also have interfaces without a link",
    "those of their links", WRONG, "at least",
)  # fmt: skip
WAYS = {"tx": "sent", "rx": "received"}
UNITS = {"bytes": "bytes", "packets": "frames"}


def node_is_links(e: Evidence) -> Found:
    """Checks that each light node whose interfaces all have counted links counts the same bytes and frames as
    these links, sent and received.
    """
    return _against_links(e, whole=True)


def node_has_links(e: Evidence) -> Found:
    """Checks that each light node that also has interfaces without a counted link counts at least the bytes
    and frames of its links, sent and received.
    """
    return _against_links(e, whole=False)


def _against_links(e: Evidence, *, whole: bool) -> Found:
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    nodes = node_steps(e)
    links = link_steps(e)
    if nodes is None or links is None:
        return Found(left_out=["no counters of nodes and links"])
    known = ports(e.plan)
    all_on_links = [node for node, devices in known.devices.items() if set(devices) <= known.covered(node)]
    wanted = known.rows.filter(pl.col("node").is_in(all_on_links) == whole)
    if wanted.is_empty():
        return Found()
    carried = wanted.join(links, on=["link", "direction"], how="inner")
    sums = carried.group_by("node", "way", "sample").agg(
        pl.col("bytes", "packets").sum(), pl.col("whole").all()
    )
    return _found(sums, nodes, e.virtual)


def _found(carried: pl.DataFrame, nodes: pl.DataFrame, exact: bool) -> Found:
    """Compares bytes and frames of each node, sent and received, over the samples in which no counter of the
    node or its links restarted. exact: no difference is allowed.
    """
    compared: list[Compared] = []
    left_out: list[str] = []
    for way in WAYS:
        own = nodes.select(
            "node", "sample", own_whole="whole", own_bytes=f"{way}_bytes", own_packets=f"{way}_packets"
        )
        both = carried.filter(way=way).join(own, on=["node", "sample"], how="inner")
        kept = both.filter(pl.col("whole") & pl.col("own_whole"))
        for row in _sums(kept).iter_rows(named=True):
            compared += _of_node(row, way, exact)
        gone = set(both["node"]) - set(kept["node"])
        left_out += ["counters restarted in every sample"] * len(gone)
    return Found(compared, left_out)


def _sums(rows: pl.DataFrame) -> pl.DataFrame:
    units = [name for unit in UNITS for name in (unit, f"own_{unit}")]
    most = [pl.col(name).max().alias(f"most_{name}") for name in units]
    return rows.group_by("node").agg(pl.col(units).sum(), *most).sort("node")


def _of_node(row: dict[str, Any], way: str, exact: bool) -> Iterator[Compared]:
    """Yields a node's bytes and frames, sent or received (`way`), beside those of its links.

    In real time (`exact` is false) the counters are read one after another, so the traffic of the busiest
    sample is the tolerance.
    """
    for unit, word in UNITS.items():
        tolerance = 0 if exact else max(row[f"most_{unit}"], row[f"most_own_{unit}"])
        yield Compared(f"{row['node']} {WAYS[way]}", row[f"own_{unit}"], row[unit], word, tolerance)
