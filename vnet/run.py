"""Reads one run directory: manifest, plan, figures, verdicts, tables and captures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from contract import findings, rundir, seal
from contract.manifest import Contents
from contract.plan import Plan

from . import files
from .errors import LoadError
from .packets import Packets

JUDGE = "`vnet report DIR` judges the run and writes it"


@dataclass(frozen=True)
class Run:
    """One run directory. Each member reads its file at its first use and raises LoadError if the file is
    missing or unreadable.
    """

    path: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The run's manifest.json: state, seed, kernel, phases, warnings, suspect; with one more warning for
        each file that changed after the run was sealed.
        """
        found: Contents = files.read_json(self.path / "manifest.json")
        return dict(findings.known(found, seal.altered(self.path)))

    @cached_property
    def plan(self) -> Plan:
        """The plan of the run (plan.json)."""
        try:
            return rundir.read_plan(self.path)
        except rundir.UnreadableError as error:
            raise LoadError(str(error)) from error

    @cached_property
    def summary(self) -> pl.DataFrame:
        """One row for each metric of summary.json: name, columns that name its subject (link, class …),
        value, unit, n, low, high, method.
        """
        return files.rows(files.read_by(rundir.read_summary, self.path / rundir.SUMMARY))

    @cached_property
    def proof(self) -> pl.DataFrame:
        """One row for each quantity of a link: requested, measured and the verdict of the link proof."""
        return files.rows(list(map(asdict, files.read_by(rundir.read_proof, self.path / rundir.PROOF))))

    @cached_property
    def verdicts(self) -> pl.DataFrame:
        """One row for each verdict: of (expectation, proof, guarantee, check or claim), name, verdict
        (holds, fails, cannot tell; for claims also by construction), reason. LoadError for a run of an
        earlier version that `vnet report` has not yet judged.
        """
        found = files.read_by(rundir.read_verdicts, self.path / rundir.VERDICTS, JUDGE)
        return files.rows(list(map(asdict, found)))

    @property
    def tables(self) -> list[str]:
        """The names of the tables of the run, which `table` takes."""
        return files.names(self.path)

    def table(self, name: str) -> pl.LazyFrame:
        """Returns the table NAME.parquet of the run directory as a lazy frame; LoadError if it is missing or
        unreadable.
        """
        return files.scan(self.path / f"{name}.parquet", self.tables)

    @property
    def messages(self) -> pl.LazyFrame:
        """One row for each message and expected receiver, lazy because there may be millions."""
        return self.table("messages")

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """CPU, traffic and memory of each node, one row a second."""
        return self.table("nodes").collect()

    @cached_property
    def links(self) -> pl.DataFrame:
        """Traffic, drops and queue of each link and direction, one row a second."""
        return self.table("links").collect()

    @cached_property
    def host(self) -> pl.DataFrame:
        """The samples of the machine that carried the lab, one row a second."""
        return self.table("host").collect()

    @cached_property
    def events(self) -> pl.DataFrame:
        """The events of the timeline with the times at which they were applied."""
        return self.table("events").collect()

    @property
    def points(self) -> list[str]:
        """The names of the capture points whose packets were reduced."""
        return files.names(self.path / "packets")

    def packets(self, point: str) -> Packets:
        """Returns the packets of one capture point; LoadError if the point has no reduced packets."""
        frame = files.scan(self.path / "packets" / f"{point}.parquet", self.points)
        return Packets(point, frame, self.path / "pcap" / f"{point}.pcap")
