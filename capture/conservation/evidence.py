"""Defines the input of conservation checks: a run's plan, manifest, proof and tables, each read once when a
check needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from capture import rawfile
from capture.rawfile import INTEGER, NAME
from contract import retired, rundir
from contract.manifest import Manifest
from contract.plan import Plan
from contract.proof import Proven

Span = tuple[int, int]
PEAKS = {"t_ns": INTEGER, "node": NAME, "memory_bytes": INTEGER}
PROCESSES = {"t_ns": INTEGER, "node": NAME, "group_ns": INTEGER, "processes_ns": INTEGER}


@dataclass(frozen=True)
class Recorded:
    """The numbers of lines in raw/messages.csv for scheduled messages, arrivals at receivers and replies.

    misfits: True if the reduction left some lines out of the table; a warning reports this.
    """

    sent: int
    arrivals: int
    replies: int
    misfits: bool = False


@dataclass(frozen=True)
class Evidence:
    """The plan, manifest and tables of one run.

    recorded: None if the run has no records. pcap_bytes: the size of each pcap file that this reduction read.
    matching: for each capture with a filter, the number of packets that match when the filter is applied
    again. seen: for each capture point, the time when it first captured each message
    (capture.message_frames).
    """

    run_dir: Path
    plan: Plan
    manifest: Manifest
    recorded: Recorded | None = None
    pcap_bytes: Mapping[str, int] = field(default_factory=dict)
    matching: Mapping[str, int] = field(default_factory=dict)
    seen: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    @property
    def virtual(self) -> bool:
        """True if the run was in virtual time, where the counters of one sample are read at one moment and so
        agree exactly.
        """
        return self.manifest.virtual

    @cached_property
    def unsuitable(self) -> str:
        """The reason why counters of this run cannot be compared (the fake driver, or a multi-host lab); ""
        if they can.
        """
        if self.manifest.driver == "fake":
            return "the fake driver's figures are invented"
        if self.plan.hosts:
            return "the lab is over several hosts, whose counters are not read at one time"
        return ""

    @cached_property
    def scenario(self) -> Span | None:
        """The begin of the first phase and the end of the last, in ns; None if the run has no phases."""
        phases = self.manifest.phases
        return (min(b for b, _ in phases.values()), max(e for _, e in phases.values())) if phases else None

    @cached_property
    def nodes(self) -> pl.DataFrame | None:
        return self._table("nodes")

    @cached_property
    def links(self) -> pl.DataFrame | None:
        """The samples of whole link directions, without the rows of traffic classes; None without samples."""
        table = self._table("links")
        return None if table is None else table.filter(pl.col("class").is_null())

    @cached_property
    def messages(self) -> pl.DataFrame | None:
        return self._table("messages")

    @cached_property
    def host(self) -> pl.DataFrame | None:
        return self._table("host")

    @cached_property
    def stacks(self) -> pl.DataFrame | None:
        return self._table("stacks")

    @cached_property
    def transfers(self) -> pl.DataFrame | None:
        return self._table("transfers")

    @cached_property
    def events(self) -> pl.DataFrame | None:
        return self._table("events")

    @cached_property
    def sessions(self) -> pl.DataFrame | None:
        return self._table("sessions")

    @cached_property
    def impairments(self) -> pl.DataFrame | None:
        """The changes of links by a trace; None without such changes."""
        return self._table("impairments")

    def counted(self, counters: Iterable[str]) -> dict[str, int]:
        """Returns the sum of these counters of each node's network stack; omits nodes that have none of them.
        Requires a table of stacks.
        """
        assert self.stacks is not None
        rows = self.stacks.filter(pl.col("counter").is_in(list(counters)))
        return dict(rows.group_by("node").agg(pl.col("value").sum()).iter_rows())

    @cached_property
    def processes(self) -> pl.DataFrame | None:
        """CPU time of nodes at the end of the run (t_ns, node, group_ns, processes_ns), by their control
        groups and by their processes; None if it was not read.
        """
        path = self.run_dir / "raw" / "cpu.csv"
        return rawfile.table(path, PROCESSES).lines if path.exists() else None

    @cached_property
    def proof(self) -> list[Proven]:
        """The measurements of the link proof; an empty list if proof.json is absent or unreadable."""
        try:
            return rundir.read_proof(self.run_dir)
        except (OSError, ValueError):
            return []

    @cached_property
    def peaks(self) -> pl.DataFrame | None:
        """The peak memory of each node's control group and the time of its reading (t_ns, node,
        memory_bytes); None if raw/peaks.csv is absent.
        """
        path = self.run_dir / "raw" / "peaks.csv"
        return rawfile.table(path, PEAKS).lines if path.exists() else None

    @cached_property
    def overrun(self) -> bool:
        """True if a session failed, for example because its socket buffer was full."""
        return self.sessions is not None and self.sessions.filter(what="failed").height > 0

    def packets(self, point: str) -> pl.LazyFrame | None:
        """Returns the packets that a capture point recorded; None without a table."""
        path = self.run_dir / "packets" / f"{point}.parquet"
        return pl.scan_parquet(path) if path.exists() else None

    def _table(self, name: str) -> pl.DataFrame | None:
        """Returns the table of that name, with columns of earlier versions renamed; None if it is absent or
        empty.
        """
        path = self.run_dir / f"{name}.parquet"
        table = pl.read_parquet(path) if path.exists() else None
        if table is None or table.is_empty():
            return None
        return table.rename(retired.columns(name, table.columns))
