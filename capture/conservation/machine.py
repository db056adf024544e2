"""Checks the CPU times and sample times of kernels against the clock, that counters of light nodes never
decrease, and that the nodes' memory fits the lab's kernel.
"""

from __future__ import annotations

import polars as pl

from capture import rawfile, series
from capture.conservation.check import Compared, Found, Rule
from capture.conservation.counters import fallen, light_nodes
from capture.conservation.evidence import Evidence

MACHINE_TIME = Rule(
    "machine-time", "the busy and idle time of a kernel's cores", "the time that passed on all of them",
    "CPU of the machine is wrong: repeat the run", singular=True,
)  # fmt: skip
SAMPLE_TIMES = Rule(
    "sample-times", "rounds of samples of nodes and of links, and the time that they take",
    "those of the lab's kernel",
    "rates refer to another time than stated: repeat the run, and report it as an error",
)  # fmt: skip
COUNTERS_GROW = Rule(
    "counters-grow", "samples in which a counter of a node went down", "those that an event explains",
    "rates of that node are wrong: its interface, or the node itself, was created again",
)  # fmt: skip
NODE_MEMORY = Rule(
    "node-memory", "the memory of all nodes", "the memory of the lab's kernel",
    "memory of nodes is wrong: repeat the run, and report it as an error", "at most", singular=True,
)  # fmt: skip
# Kernels count by ticks: idle ones, User-Mode Linux among them, counted 0.82 to 1.14 times the time that
# passed.
APART = 0.4
FILES = {"lab": "host.csv", "outer": "outer.csv"}
SHORTEST_NS = 3_000_000_000
ROUND_NS = 1_500_000_000  # a bit more than the interval between samples, 1 s


def cores_have_time(e: Evidence) -> Found:
    """Checks the times of /proc/stat (user, system, idle and others), for the lab's kernel and the machine's:
    their sum must equal the time that passed, times the number of cores, within 40 %.

    In virtual time the tolerance grows by the nodes' CPU time and by surplus idle time. Kernels with samples
    over less than 3 s are left out.
    """
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    compared, left_out = [], []
    for where, name in FILES.items():
        path = e.run_dir / "raw" / name
        if not path.exists():
            continue
        rows = rawfile.table(path, series.HOST).lines.sort("t_ns")
        if rows.is_empty() or (passed := rows["t_ns"][-1] - rows["t_ns"][0]) < SHORTEST_NS:
            left_out.append("the samples of a kernel are less than 3 s")
            continue
        sums = rows.select(pl.sum_horizontal(series.TIMES)).to_series()
        whole = passed * int(rows["cores"].max())  # type: ignore[arg-type]
        apart, idle = round(APART * whole), int(rows["idle_ns"][-1] - rows["idle_ns"][0])
        counted = int(sums[-1] - sums[0])
        if e.virtual and counted < whole:
            # Calls of nodes take time between ticks: too little is counted if they are long.
            apart += _of_nodes_ns(e)
        elif e.virtual and idle > whole:
            # The kernel counts a whole tick of idle time at each wake-up: too much if it wakes often. It
            # cannot have been idle while a node used it.
            quietest = float((rows["idle_ns"].diff() / rows["t_ns"].diff()).min())  # type: ignore[arg-type]
            if quietest <= (1 + APART) * whole / passed:
                apart += idle - max(0, whole - _of_nodes_ns(e))
        compared.append(Compared(where, counted, whole, "ns", apart))
    return Found(compared, left_out or ([] if compared else ["no samples of the lab's kernel"]))


def _of_nodes_ns(e: Evidence) -> int:
    """Returns the CPU time of all nodes from their first sample to their last, in ns."""
    if e.nodes is None:
        return 0
    grown = e.nodes.sort("t_ns").select(pl.col("cpu_ns").diff().over("node"))["cpu_ns"]
    return int(grown.filter(grown > 0).sum())


def samples_take_one_time(e: Evidence) -> Found:
    """Checks that the samples of light nodes and of links cover the same time as the samples of the lab's
    kernel, within 1.5 s, and that the numbers of sample times differ by at most one.
    """
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    if e.host is None:
        return Found(left_out=["no samples of the lab's kernel"])
    names = [node.name for node in light_nodes(e.plan)]
    nodes = None if e.nodes is None else e.nodes.filter(pl.col("node").is_in(names))
    lab = e.host.filter(where="lab")
    kernel, rounds = _span(lab), lab["t_ns"].n_unique()
    found = {"nodes": _span(nodes), "links": _span(e.links)}
    compared = [
        Compared(of, span, kernel, "ns", ROUND_NS)
        for of, span in found.items() if span is not None and kernel is not None
    ]  # fmt: skip
    compared += [
        Compared(f"rounds of {of}", rows["t_ns"].n_unique(), rounds, "samples", 1)
        for of, rows in (("nodes", nodes), ("links", e.links)) if rows is not None and found[of] is not None
    ]  # fmt: skip
    return Found(compared, [] if compared else ["no samples of light nodes and of links"])


def counters_only_grow(e: Evidence) -> Found:
    """Checks that no counter of a light node decreases between samples, except after an event on the node."""
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    count = fallen(e)
    if count is None:
        return Found(left_out=["no samples of nodes"])
    return Found([Compared("nodes", count, 0, "samples")])


def _span(rows: pl.DataFrame | None) -> int | None:
    if rows is None or rows.is_empty():
        return None
    return int(rows["t_ns"].max()) - int(rows["t_ns"].min())  # type: ignore[arg-type]


def nodes_fit_memory(e: Evidence) -> Found:
    """Checks that the light nodes together never use more memory in a sample than the lab's kernel has."""
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    there = e.manifest.host.get("memory_bytes")
    if e.nodes is None or not there:
        return Found(left_out=["no samples of nodes, or the manifest does not tell the kernel's memory"])
    names = [node.name for node in light_nodes(e.plan)]
    rows = e.nodes.filter(pl.col("node").is_in(names)).group_by("t_ns").agg(pl.col("memory_bytes").sum())
    if rows.is_empty():
        return Found(left_out=["no samples of light nodes"])
    return Found([Compared(f"{len(names)} nodes", int(rows["memory_bytes"].max()), int(there), "bytes")])  # type: ignore[arg-type]
