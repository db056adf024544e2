"""Names of a run directory's files, and the reader of its plan (docs/contracts/run-directory.md)."""

from __future__ import annotations

import json
from pathlib import Path

from . import manifest
from .codec import build
from .plan import PLAN_FORMAT, Plan

PLAN, MANIFEST, PROOF, SUMMARY, VERDICTS = (
    "plan.json", manifest.NAME, "proof.json", "summary.json", "verdicts.json",
)  # fmt: skip


class UnreadableError(Exception):
    """A file of the run directory is absent, damaged or of another version; the text says which and why."""


class FormatError(UnreadableError):
    """The plan is of a format that this version does not read."""


def read_plan(run_dir: Path) -> Plan:
    """The plan of the run, also one that an earlier version wrote in the same format."""
    path = run_dir / PLAN
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = data["format"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UnreadableError(f"{path}: {error!r}; a run directory holds the plan that it ran") from error
    if found != PLAN_FORMAT:
        raise FormatError(
            f"{run_dir}: its plan is of format {found}, and this version of vnet reads format {PLAN_FORMAT}; "
            f"report the run with the version that made it: {_made_by(run_dir)}"
        )
    try:
        return build(Plan, data)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise UnreadableError(
            f"{path}: is damaged: {error}; a run directory holds the plan that it ran"
        ) from error


def _made_by(run_dir: Path) -> str:
    """The version that the run's manifest names."""
    try:
        return f"vnet {manifest.read(run_dir)['versions']['vnet']}"
    except (OSError, ValueError, LookupError, TypeError):
        return "its manifest.json does not tell which"
