"""Compares the CPU time of nodes with the time of the kernel's cores and with the CPU time of the nodes'
processes.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from capture.conservation.check import Compared, Found, Rule
from capture.conservation.counters import light_nodes
from capture.conservation.evidence import Evidence

NODE_CPU = Rule(
    "node-cpu", "the CPU time of all nodes", "the time that the cores of the lab's kernel had and worked",
    "CPU of nodes is wrong: repeat the run, and report it as an error", "at most", singular=True,
)  # fmt: skip
NODE_CPU_PROCESSES = Rule(
    "node-cpu-processes", "the CPU time of nodes by their control groups",
    "that of the processes in them, by /proc",
    "CPU of nodes is wrong: repeat the run, and report it as an error", "at least", singular=True,
)  # fmt: skip
# The most CPU time that a process uses before it joins its node's control group: the kernel counts this time
# for the process only. In a lab kernel that waited for its machine it was 40 ms.
SETUP_NS = {"real": 500_000_000, "virtual": 100_000_000}
# The kernel counts busy time by ticks, which missed at most 11 % of a core where calls took 1 ms at most; in
# samples in which a fault of its scheduler charged nodes wrongly, it was 82 %.
UNSEEN, LONGEST_CALL_NS = 0.4, 1_000_000
TICK_NS = 10_000_000  # the resolution of kernels that count CPU time in timer ticks (HZ=100)


def nodes_fit(e: Evidence) -> Found:
    """Checks that all light nodes together used at most the CPU time of all cores of the lab's kernel from
    the first sample to the last. The tolerance is one tick (10 ms) for each node. In virtual time the same
    must be true from each sample to the next, with a tolerance of one tick, and for the time that the kernel
    counted as busy, with a tolerance of 40 % of the time.
    """
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    if e.nodes is None or e.host is None:
        return Found(left_out=["no samples of nodes and of the lab's kernel"])
    names = [node.name for node in light_nodes(e.plan)]
    rows = e.nodes.filter(pl.col("node").is_in(names)).sort("node", "t_ns")
    lab = e.host.filter(pl.col("where") == "lab").drop_nulls("cores")
    if rows.is_empty() or lab.is_empty():
        return Found(left_out=["no samples of light nodes and of the lab's kernel"])
    grown = rows.select("node", pl.col("cpu_ns").diff().over("node")).filter(pl.col("cpu_ns") > 0)
    passed = int(rows["t_ns"].max()) - int(rows["t_ns"].min())  # type: ignore[arg-type]
    cores = int(lab["cores"].max())  # type: ignore[arg-type]
    took, of = int(grown["cpu_ns"].sum()), f"{len(names)} nodes"
    compared = [Compared(of, took, passed * cores, "ns", len(names) * TICK_NS)]
    return Found([*compared, *_by_sample(e, rows, lab, cores)] if e.virtual else compared)


def _by_sample(e: Evidence, rows: pl.DataFrame, lab: pl.DataFrame, cores: int) -> Iterator[Compared]:
    """Yields the comparisons for the two pairs of successive samples in which the nodes' CPU time is most
    above the time of all cores, and above their busy time.
    """
    over = rows.select(
        "t_ns", since=pl.col("t_ns").diff().over("node") * cores, ns=pl.col("cpu_ns").diff().over("node")
    )
    spans = over.filter(pl.col("ns") > 0).group_by("t_ns").agg(pl.col("ns").sum(), pl.col("since").max())
    if spans.height:
        ns, since = spans.sort(pl.col("ns") - pl.col("since"), "t_ns").select("ns", "since").row(-1)
        yield Compared("all, from a sample to the next", ns, since, "ns", TICK_NS)
    if spans.height and e.manifest.kernel.get("syscall_ns", 0) <= LONGEST_CALL_NS:
        ticks = lab.drop_nulls("busy_share").sort("t_ns").select("t_ns", "busy_share")
        both = spans.sort("t_ns").join_asof(ticks, on="t_ns", strategy="nearest").drop_nulls()
        above = both.with_columns(busy=(pl.col("busy_share") * pl.col("since")).cast(pl.Int64)).sort(
            (pl.col("ns") - pl.col("busy")) / pl.col("since"), "t_ns"
        )
        for ns, busy, since in above.select("ns", "busy", "since").tail(1).iter_rows():
            yield Compared("all, beside busy time", ns, busy, "ns", round(UNSEEN * since))


def groups_have_processes(e: Evidence) -> Found:
    """Checks that each node's control group has at least the CPU time of its processes at the end of the run,
    including processes that have ended. The tolerance is 510 ms, in virtual time 110 ms.

    It also checks that the group's CPU time at the end exceeds that of the node's last sample by at most the
    time of all cores between the two, plus 10 ms.
    """
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    if e.processes is None:
        return Found(left_out=["the times of processes were not added up"])
    setup_ns = SETUP_NS["virtual" if e.virtual else "real"]
    compared = [
        Compared(f"{node}, at the end", group, processes, "ns", setup_ns + TICK_NS)
        for node, group, processes in e.processes.select("node", "group_ns", "processes_ns").iter_rows()
    ]
    return Found([*compared, *_last_samples(e, e.processes)])


def _last_samples(e: Evidence, processes: pl.DataFrame) -> Iterator[Compared]:
    if e.nodes is None or e.host is None:
        return
    cores = int(e.host.filter(pl.col("where") == "lab")["cores"].drop_nulls().max() or 1)  # type: ignore[arg-type]
    last = e.nodes.sort("t_ns").group_by("node").last().select("node", "t_ns", "cpu_ns")
    both = processes.join(last, on="node", suffix="_sample").sort("node")
    columns = ("node", "cpu_ns", "group_ns", "t_ns", "t_ns_sample")
    for node, sampled, group, end_ns, sample_ns in both.select(columns).iter_rows():
        since = max(0, end_ns - sample_ns) * cores + TICK_NS
        yield Compared(f"{node}, last sample", sampled, group, "ns", since)
