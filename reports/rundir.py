"""Read one run directory: what is there as tables, what is missing as sentences, nothing guessed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from capture import seal, trials, trust
from capture.reduce import PLAN_FORMAT
from reports.errors import RunDirectoryError as RunDirectoryError

TRIAL_TABLES = ("trials", "latencies", "findings")  # of runs that carry out trials of a path
TABLES = (
    "messages", "transfers", "windows", "sessions", "nodes", "stacks", "links", "impairments", "host",
    "events",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One run as found on disk. `tables` and `captures` hold only what exists and can be read."""

    path: Path
    plan: dict[str, Any]
    manifest: dict[str, Any]
    proof: list[dict[str, Any]]
    tables: dict[str, pl.DataFrame]
    captures: dict[str, Path]
    missing: tuple[str, ...]
    lab: str = field(default="")
    altered: tuple[str, ...] = ()  # files that were changed after they had been written
    connections: dict[str, pl.DataFrame] = field(default_factory=dict)  # by capture point, those with rows
    bounds: dict[str, Any] = field(default_factory=dict)  # of its flows' delays, by network calculus

    def table(self, name: str) -> pl.DataFrame | None:
        """The table with at least one row, or None."""
        found = self.tables.get(name)
        return None if found is None or found.is_empty() else found

    @property
    def of_trials(self) -> bool:
        """Whether its plan has trials of a path."""
        return bool(self.plan) and trials.planned(self.plan)

    @property
    def virtual(self) -> bool:
        """Whether the lab's clock jumped over waiting."""
        return self.manifest.get("time") == "virtual"

    @property
    def ticked(self) -> bool:
        """Whether its kernel counts the CPU of nodes by the timer's ticks, between which short work falls."""
        table = self.table("nodes")
        return table is not None and trust.ticked(table)


def read_run(path: Path) -> Run:
    """The run in `path`; RunDirectoryError where it holds neither plan.json nor manifest.json."""
    missing: list[str] = []
    plan = _json(path / "plan.json", {}, missing)
    manifest = _json(path / "manifest.json", {}, missing)
    if not plan and not manifest:
        raise RunDirectoryError(
            f"{path}: holds neither a readable plan.json nor a manifest.json; "
            "a report needs a run directory (results/LAB/RUN)"
        )
    if plan and plan.get("format") != PLAN_FORMAT:
        made_by = (manifest.get("versions") or {}).get("vnet", "of which its manifest.json does not tell")
        raise RunDirectoryError(
            f"{path}: its plan is of format {plan.get('format')}, and this version of vnet reports format "
            f"{PLAN_FORMAT}; report the run with the version that made it: vnet {made_by}"
        )
    tables = _tables(path, plan, missing)
    return Run(
        path=path,
        plan=plan,
        manifest=manifest,
        proof=_json(path / "proof.json", [], missing),
        tables=tables,
        captures=_captures(path, plan, missing),
        connections=_connections(path, missing),
        bounds=_bounds(path, missing),
        missing=tuple(missing),
        altered=seal.altered(path),
        lab=str(plan.get("lab") or manifest.get("lab") or path.parent.name),
    )


def _json(path: Path, absent: Any, missing: list[str]) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        missing.append(f"{path.name} is not there")
    except (OSError, ValueError) as error:
        missing.append(f"{path.name} cannot be read: {error}")
    return absent


def _bounds(path: Path, missing: list[str]) -> dict[str, Any]:
    """Only runs whose flows have curves leave it."""
    return dict(_json(path / "bounds.json", {}, missing)) if (path / "bounds.json").is_file() else {}


def _tables(path: Path, plan: dict[str, Any], missing: list[str]) -> dict[str, pl.DataFrame]:
    found: dict[str, pl.DataFrame] = {}
    for name in (*TABLES, *(TRIAL_TABLES if plan and trials.planned(plan) else ())):
        file = path / f"{name}.parquet"
        try:
            found[name] = pl.read_parquet(file)
        except FileNotFoundError:
            if plan and not _leaves(plan, name):
                continue
            missing.append(f"{file.name} is not there (the run was not reduced, or ended before that)")
        except (OSError, pl.exceptions.PolarsError) as error:
            missing.append(f"{file.name} cannot be read: {error}")
    return found


def _leaves(plan: dict[str, Any], table: str) -> bool:
    """Whether every run of the plan leaves that table: a timeline leaves events, bulk flows their
    progress and, if asked to, their windows.
    """
    if table == "stacks":
        return False  # nor do runs of earlier versions
    if table == "events":
        return bool(plan.get("events"))
    if table == "impairments":
        return bool(plan.get("traces"))
    if table == "transfers":
        return any(flow.get("schedule") is None for flow in plan.get("flows", []))
    if table == "windows":
        asked = (
            s.get("spec", {}).get("window_ns") for n in plan.get("nodes", []) for s in n.get("software", [])
        )
        return any(asked)
    return True


def _captures(path: Path, plan: dict[str, Any], missing: list[str]) -> dict[str, Path]:
    """Reduced captures, in the plan's order, then any others."""
    there = {file.stem: file for file in sorted((path / "packets").glob("*.parquet"))}
    planned = [str(c["name"]) for c in plan.get("captures", [])]
    found: dict[str, Path] = {}
    for name in [*planned, *there]:
        if name not in there:
            missing.append(f"packets/{name}.parquet is not there (capture point {name!r} was not reduced)")
            continue
        try:
            pl.read_parquet_schema(there[name])
        except (OSError, pl.exceptions.PolarsError) as error:
            missing.append(f"packets/{name}.parquet cannot be read: {error}")
            continue
        found[name] = there[name]
    return found


def _connections(path: Path, missing: list[str]) -> dict[str, pl.DataFrame]:
    """The TCP connections of every capture point that saw one."""
    found = {}
    for file in sorted((path / "connections").glob("*.parquet")):
        try:
            table = pl.read_parquet(file)
        except (OSError, pl.exceptions.PolarsError) as error:
            missing.append(f"connections/{file.name} cannot be read: {error}")
            continue
        if not table.is_empty():
            found[file.stem] = table
    return found
