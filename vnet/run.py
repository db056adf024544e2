"""One run directory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from contract import findings, retired, rundir, seal, verdict
from contract.manifest import Contents
from contract.plan import Plan

from . import files
from .errors import LoadError
from .packets import Packets

JUDGE = "`vnet report DIR` judges the run and writes it"


@dataclass(frozen=True)
class Run:
    """Reads files when they are needed. Errors of all members: LoadError."""

    path: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """How the run went: state, seed, kernel, phases, warnings, suspect; with a warning for each file that
        was changed after it had been sealed.
        """
        found: Contents = files.read_json(self.path / "manifest.json")
        return dict(findings.known(found, seal.altered(self.path)))

    @cached_property
    def plan(self) -> Plan:
        """The plan of the run."""
        try:
            return rundir.read_plan(self.path)
        except rundir.UnreadableError as error:
            raise LoadError(str(error)) from error

    @cached_property
    def summary(self) -> pl.DataFrame:
        """Every headline figure: name, what it is of (a column each), value, unit, n, low, high, method."""
        return files.rows(retired.figures(files.read_json(self.path / "summary.json")))

    @cached_property
    def proof(self) -> pl.DataFrame:
        """Every quantity of a link, requested and measured, with its verdict."""
        return files.rows(
            _in_todays_words(retired.objects("proof.json", files.read_json(self.path / "proof.json")))
        )

    @cached_property
    def verdicts(self) -> pl.DataFrame:
        """Every verdict: of (proof, guarantee, check, claim), name, verdict (holds, fails, cannot tell; of
        claims also by construction), reason. Runs of earlier versions have them once `vnet report` has judged
        them.
        """
        found = files.read_json(self.path / "verdicts.json", JUDGE)["verdicts"]
        return files.rows(_in_todays_words(retired.judged(found)))

    @property
    def tables(self) -> list[str]:
        """The names of the tables, for `table`."""
        return files.names(self.path)

    def table(self, name: str) -> pl.LazyFrame:
        """NAME.parquet of the run directory, not read yet."""
        return files.scan(self.path / f"{name}.parquet", self.tables)

    @property
    def messages(self) -> pl.LazyFrame:
        """A row a message and expected receiver; lazy, since there may be millions."""
        return self.table("messages")

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """CPU, traffic and memory of each node, a row a second."""
        return self.table("nodes").collect()

    @cached_property
    def links(self) -> pl.DataFrame:
        """Traffic, drops and queue of each link and direction, a row a second."""
        return self.table("links").collect()

    @cached_property
    def host(self) -> pl.DataFrame:
        """The machine that the lab ran on, a row a second."""
        return self.table("host").collect()

    @cached_property
    def events(self) -> pl.DataFrame:
        """The timeline as it was applied."""
        return self.table("events").collect()

    @property
    def points(self) -> list[str]:
        """The capture points that were reduced."""
        return files.names(self.path / "packets")

    def packets(self, point: str) -> Packets:
        """The packets of a capture point."""
        frame = files.scan(self.path / "packets" / f"{point}.parquet", self.points)
        return Packets(point, frame, self.path / "pcap" / f"{point}.pcap")


def _in_todays_words(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with verdicts as earlier versions wrote them."""
    return [{**row, "verdict": verdict.word(row.get("verdict"))} for row in found]
