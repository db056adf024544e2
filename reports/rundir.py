"""Opens one run directory: existing files as tables, missing ones as sentences.

`read_run` checks all files; `Run` reads their content only when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import polars as pl

from capture import trials, trust
from contract import findings, regular, rundir, seal
from contract.manifest import Manifest
from contract.plan import NO_PLAN, Plan
from contract.proof import Proven
from reports.errors import RunDirectoryError as RunDirectoryError
from reports.shelf import Shelf, Tables

TRIAL_TABLES = ("trials", "latencies", "findings")  # tables of runs with trials of a path
TABLES = (
    "messages", "transfers", "windows", "spans", "sessions", "nodes", "stacks", "disks", "links",
    "impairments", "host", "events",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One run directory, open for reading. `tables` and `captures` hold only files that exist and can be
    read; `missing` has a sentence for each file that is missing or unreadable.
    """

    path: Path
    read_plan: Callable[[], Plan] = field(repr=False, compare=False)
    read_manifest: Callable[[], Manifest] = field(repr=False, compare=False)
    read_proof: Callable[[], list[Proven]] = field(repr=False, compare=False)
    tables: Mapping[str, pl.DataFrame]
    captures: dict[str, Path]
    missing: tuple[str, ...]
    lab: str = field(default="")
    altered: tuple[str, ...] = ()  # files that were changed after the run was sealed
    # capture point -> its table of connections, if that has rows
    connections: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    read_bounds: Callable[[], dict[str, Any]] = field(default=dict, repr=False, compare=False)

    @property
    def bounds(self) -> dict[str, Any]:
        """The network-calculus bounds of the flows' delays (bounds.json); empty if the run has none."""
        return self.read_bounds()

    @property
    def plan(self) -> Plan:
        """The plan of the run; NO_PLAN if it cannot be read."""
        return self.read_plan()

    @property
    def planned(self) -> bool:
        """Whether the plan can be read."""
        return self.plan is not NO_PLAN

    @property
    def manifest(self) -> Manifest:
        """The manifest of the run; empty if it cannot be read."""
        return self.read_manifest()

    @property
    def seed(self) -> int | str:
        """The seed by manifest or plan; "" if neither can be read."""
        seed = self.manifest.seed
        return seed if seed is not None else self.plan.seed if self.planned else ""

    @property
    def proof(self) -> list[Proven]:
        """The link proof: requested and measured value and verdict, by link, direction and quantity; empty
        without proof.json.
        """
        return self.read_proof()

    def table(self, name: str) -> pl.DataFrame | None:
        """Returns the table of that name; None if it is missing or empty."""
        found = self.tables.get(name)
        return None if found is None or found.is_empty() else found

    @cached_property
    def of_trials(self) -> bool:
        """Whether the plan has RFC 2544 trials of a path."""
        return trials.planned(self.plan)

    @property
    def virtual(self) -> bool:
        """Whether the run was in virtual time."""
        return self.manifest.virtual

    @cached_property
    def ticked(self) -> bool:
        """Whether the kernel counted CPU in timer ticks, which miss short work."""
        table = self.table("nodes")
        return table is not None and trust.ticked(table)


def read_run(path: Path, shelf: Shelf | None = None) -> Run:
    """Returns the run in `path`. `shelf` caches files for all runs that share it.

    RunDirectoryError if the directory has neither a readable plan.json nor a readable manifest.json, if the
    plan has an unknown format, or if an entry is a link, a pipe or a device.
    """
    refuse_others(path)
    missing: list[str] = []
    shelf = shelf or Shelf()
    plan = _plan(path, shelf, missing)
    found = _json(path / rundir.MANIFEST, {}, missing)
    if plan is NO_PLAN and not found:
        raise RunDirectoryError(
            f"{path}: holds neither a readable plan.json nor a manifest.json; "
            "a report needs a run directory (results/LAB/RUN)"
        )
    files = _Files(path, shelf, missing)
    return Run(
        path=path,
        read_plan=(lambda: NO_PLAN) if plan is NO_PLAN else partial(shelf.plan, path),
        read_manifest=partial(_manifest, shelf, path, files.altered) if found else Manifest,
        read_proof=files.proof(),
        tables=files.tables(plan),
        captures=_captures(path, plan, missing),
        connections=files.connections(),
        read_bounds=files.bounds(),
        missing=tuple(missing),
        altered=files.altered,
        lab=plan.lab or Manifest.of(found).lab or path.parent.name,
    )


def refuse_others(directory: Path, *deepest: int) -> None:
    """Raises RunDirectoryError if an entry below `directory` is a link, a pipe or a device.

    Such an entry in a directory from elsewhere could block a reader, or lead reads and writes to another
    place. `deepest` limits the depth as in `other_entry`.
    """
    if directory.is_dir() and (other := regular.other_entry(directory, *deepest)):
        rule = "runs and campaigns have regular files and directories only"
        raise RunDirectoryError(f"{directory}: {other}; {rule}; remove it, or copy the directory without it")


def _manifest(shelf: Shelf, path: Path, altered: tuple[str, ...]) -> Manifest:
    """Returns the manifest with a finding for each file that changed after the seal. A changed summary.json
    does not count, because every report writes it again.
    """
    broken = tuple(name for name in altered if name != rundir.SUMMARY)
    return Manifest.of(findings.known(shelf.json(path / rundir.MANIFEST), broken))


class _Files:
    """Finds the large files of a run directory and checks that they can be read. Of a table that an intact
    seal covers, only the schema is read.
    """

    def __init__(self, path: Path, shelf: Shelf, missing: list[str]) -> None:
        self._path, self._shelf, self._missing = path, shelf, missing
        self.altered = seal.altered(path)
        self._vouched = seal.sealed(path) and seal.NAME not in self.altered

    def bounds(self) -> Callable[[], dict[str, Any]]:
        """Returns a function that reads bounds.json, which only runs with arrival curves have; without it,
        the function returns {}.
        """
        file = self._path / "bounds.json"
        there = file.is_file() and _json(file, {}, self._missing)
        return partial(self._shelf.json, file) if there else dict

    def proof(self) -> Callable[[], list[Proven]]:
        """Returns a function that reads proof.json, which can be as large as a table; without it, the
        function returns [].
        """
        file = self._path / rundir.PROOF
        try:
            there = bool(rundir.read_proof(self._path))
        except FileNotFoundError:
            self._missing.append(f"{file.name} is not there")
            return list
        except (OSError, ValueError) as error:
            self._missing.append(f"{file.name} cannot be read: {error}")
            return list
        return partial(self._shelf.proof, self._path) if there else list

    def tables(self, plan: Plan) -> Tables:
        """Returns the tables that exist and can be read. Unreadable ones are noted as missing, and absent
        ones if the plan should produce them or is unknown.
        """
        found: dict[str, Path] = {}
        for name in (*TABLES, *(TRIAL_TABLES if trials.planned(plan) else ())):
            file = self._path / f"{name}.parquet"
            if file.exists():
                if self._readable(file):
                    found[name] = file
            elif plan is NO_PLAN or _leaves(plan, name):
                self._missing.append(
                    f"{file.name} is not there (the run was not reduced, or ended too early)"
                )
        return Tables(found, self._shelf)

    def connections(self) -> Tables:
        """Returns the tables of TCP connections by capture point, without empty ones; unreadable ones are
        noted as missing.
        """
        files = sorted((self._path / "connections").glob("*.parquet"))
        return Tables({f.stem: f for f in files if self._readable(f) and _rows(f)}, self._shelf)

    def _readable(self, file: Path) -> bool:
        name = file.relative_to(self._path).as_posix()
        try:
            if self._vouched and name not in self.altered:
                pl.read_parquet_schema(file)
            else:
                self._shelf.table(file)
        except (OSError, pl.exceptions.PolarsError) as error:
            self._missing.append(f"{name} cannot be read: {error}")
            return False
        return True


def _rows(file: Path) -> int:
    return int(pl.scan_parquet(file).select(pl.len()).collect().item())


def _plan(path: Path, shelf: Shelf, missing: list[str]) -> Plan:
    try:
        return shelf.plan(path)
    except rundir.FormatError as error:
        raise RunDirectoryError(str(error)) from error
    except FileNotFoundError:
        missing.append(f"{rundir.PLAN} is not there")
    except (OSError, rundir.UnreadableError) as error:
        missing.append(f"{rundir.PLAN} cannot be read: {error}")
    return NO_PLAN


def _json(path: Path, absent: Any, missing: list[str]) -> Any:
    try:
        return regular.read_json(path)
    except FileNotFoundError:
        missing.append(f"{path.name} is not there")
    except (OSError, ValueError) as error:
        missing.append(f"{path.name} cannot be read: {error}")
    return absent


def _leaves(plan: Plan, table: str) -> bool:
    """Returns whether every complete run of the plan writes that table.

    A timeline writes events, traces write impairments, bulk flows write transfers and, if the file requests
    them, windows. stacks and spans are never required.
    """
    if table in ("stacks", "spans", "disks"):
        return False  # earlier versions, some programs and some kernels do not write these tables
    if table == "events":
        return bool(plan.events)
    if table == "impairments":
        return bool(plan.traces)
    if table == "transfers":
        return any(flow.schedule is None for flow in plan.flows)
    if table == "windows":
        return any(s.spec.get("window_ns") for n in plan.nodes for s in n.software)
    return True


def _captures(path: Path, plan: Plan, missing: list[str]) -> dict[str, Path]:
    """Returns the files of the reduced captures by capture point, those of the plan first; missing and
    unreadable ones are noted.
    """
    there = {file.stem: file for file in sorted((path / "packets").glob("*.parquet"))}
    planned = [one.name for one in plan.captures]
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
