"""Names the files of a run directory; reads and writes its plan, proof.json, summary.json and verdicts.json
(docs/contracts/run-directory.md). Translates names in files of earlier versions to the present ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import manifest, regular, retired
from .codec import build, to_json
from .plan import PLAN_FORMAT, Plan
from .proof import Proven
from .verdict import Judged

PLAN, MANIFEST, PROOF, SUMMARY, VERDICTS = (
    "plan.json", manifest.NAME, "proof.json", "summary.json", "verdicts.json",
)  # fmt: skip


VERDICTS_FORMAT = 1
Rows = list[dict[str, Any]]


class UnreadableError(Exception):
    """Raised for a plan.json that is absent or damaged."""


class FormatError(UnreadableError):
    """Raised for a plan.json of a format that this version does not read."""


def read_plan(run_dir: Path) -> Plan:
    """Returns the plan of the run, also one that an earlier version wrote in the same format. The plan that
    was read last is kept until its file changes, since reduction, checks and report each need it.

    Raises FormatError for another format, else UnreadableError if plan.json is absent or damaged.
    """
    path = run_dir / PLAN
    try:
        about = path.stat()
    except OSError as error:
        raise UnreadableError(f"{path}: {error!r}; a run directory holds the plan that it ran") from error
    return _read_plan(path, (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns))


@lru_cache(maxsize=1)
def _read_plan(path: Path, _of: tuple[int, ...]) -> Plan:
    run_dir = path.parent
    try:
        data = regular.read_json(path)
        found = data["format"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UnreadableError(f"{path}: {error!r}; a run directory holds the plan that it ran") from error
    if found != PLAN_FORMAT:
        raise FormatError(
            f"{run_dir}: its plan is of format {found}, and this version of vnet reads format {PLAN_FORMAT}; "
            f"report the run with the version that made it: {_made_by(run_dir)}"
        )
    try:
        plan = build(Plan, data)
        _insist_on_file_names(plan)
        return plan
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise UnreadableError(
            f"{path}: is damaged: {error}; a run directory holds the plan that it ran"
        ) from error


def _insist_on_file_names(plan: Plan) -> None:
    """Raises ValueError if a name that is part of file names leads to another directory."""
    programs = (one.name for node in plan.nodes for one in node.software)
    for name in (*(n.name for n in plan.nodes), *programs, *(c.name for c in plan.captures)):
        if "/" in name or "\0" in name:
            raise ValueError(f"the name {name!r} is no part of a file name")


def write_plan(run_dir: Path, plan: Plan) -> None:
    """Writes the plan of a run; makes the directory if it does not exist."""
    run_dir.mkdir(parents=True, exist_ok=True)
    with regular.named(run_dir / PLAN):
        (run_dir / PLAN).write_text(to_json(plan))


def _made_by(run_dir: Path) -> str:
    """Returns "vnet VERSION" by the run's manifest, or a text that the manifest has no version."""
    try:
        return f"vnet {manifest.read(run_dir)['versions']['vnet']}"
    except (OSError, ValueError, LookupError, TypeError):
        return "its manifest.json does not tell which"


def read_proof(run_dir: Path) -> list[Proven]:
    """Returns the measurements of the link proof in proof.json. Raises OSError for a file that cannot be
    read, ValueError for a damaged one.
    """
    return [Proven.of(row) for row in _rows(run_dir / PROOF)]


def read_summary(directory: Path) -> Rows:
    """Returns the figures in summary.json of a run or campaign, with present names. Raises OSError for a file
    that cannot be read, ValueError for a damaged one.
    """
    return retired.figures(_rows(directory / SUMMARY))


def read_verdicts(directory: Path) -> list[Judged]:
    """Returns the verdicts in verdicts.json of a run or campaign. Raises OSError for a file that cannot be
    read, ValueError for a damaged one.
    """
    rows = retired.judged(_objects(directory / VERDICTS, _verdicts(directory).get("verdicts")))
    try:
        return [Judged.of_row(row) for row in rows]
    except KeyError as error:
        raise ValueError(f"{directory / VERDICTS}: has a verdict without {error}") from error


def read_counts(directory: Path) -> dict[str, dict[str, int]]:
    """Returns `counts` of verdicts.json: the number of verdicts by subject and word; for a campaign, over all
    its runs. Raises OSError for a file that cannot be read, ValueError for a damaged one.
    """
    counts = _verdicts(directory).get("counts")
    if not isinstance(counts, dict) or not all(isinstance(words, dict) for words in counts.values()):
        raise ValueError(f"{directory / VERDICTS}: holds no numbers of verdicts")
    return {retired.SUBJECTS.get(of, of): dict(words) for of, words in counts.items()}


def write_proof(run_dir: Path, checks: Iterable[Proven]) -> None:
    """Writes the measurements of the link proof to proof.json."""
    _write(run_dir / PROOF, [asdict(check) for check in checks])


def write_summary(directory: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes the figures of a run or campaign to summary.json."""
    _write(directory / SUMMARY, list(rows))


def write_verdicts(
    directory: Path,
    verdicts: Iterable[Judged],
    counts: Mapping[str, Mapping[str, int]],
    suspect: Mapping[str, str],
) -> None:
    """Writes verdicts and their numbers (subject: word: number) to verdicts.json. suspect maps the name of a
    cell to the reason why its run is suspect.
    """
    data = {"suspect": suspect, "counts": counts, "verdicts": [asdict(one) for one in verdicts]}
    _write(directory / VERDICTS, {"format": VERDICTS_FORMAT, **data})


def _rows(path: Path) -> Rows:
    return _objects(path, _json(path))


def _objects(path: Path, found: Any) -> Rows:
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError(f"{path}: has no list of objects")
    return found


def _verdicts(directory: Path) -> dict[str, Any]:
    found = _json(path := directory / VERDICTS)
    if not isinstance(found, dict):
        raise ValueError(f"{path}: is no object")
    return found


def _json(path: Path) -> Any:
    return regular.read_json(path)


def _write(path: Path, data: Any) -> None:
    regular.write(path, json.dumps(data, indent=1) + "\n")
