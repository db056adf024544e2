"""Names the files of a run directory, and reads its plan (docs/contracts/run-directory.md)."""

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
    """Raised for a file of the run directory that is absent, damaged or of another version."""


class FormatError(UnreadableError):
    """Raised for a plan of a format that this version does not read."""


def read_plan(run_dir: Path) -> Plan:
    """Returns the plan of the run, also one that an earlier version wrote in the same format.

    Raises UnreadableError.
    """
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
    """Returns the version in the run's manifest as text, or why there is none."""
    try:
        return f"vnet {manifest.read(run_dir)['versions']['vnet']}"
    except (OSError, ValueError, LookupError, TypeError):
        return "its manifest.json does not tell which"
