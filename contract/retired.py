"""Translates names in files of earlier versions to the present ones.

Reports, command line and Python API share it, so that old run directories are read like new ones. Imports
the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

# Present names of columns and keys by file or table: {old name: present name}.
NAMES: Mapping[str, Mapping[str, str]] = {
    "proof.json": {"asked": "requested", "realised": "measured", "slack": "tolerance"},
    "links": {
        "asked_bps": "requested_bps",
        "asked_delay_ns": "requested_delay_ns",
        "asked_loss": "requested_loss",
    },
    "disturbance": {"halted": "stopped"},
    "messages": {"promise": "guarantee"},
    "summary.json": {"promise": "guarantee"},
}
# Present names of the subjects in verdicts.json: {old name: present name}.
SUBJECTS: Mapping[str, str] = {"promise": "guarantee"}
# Present names of figures in summary.json: {old name: present name}.
FIGURES: Mapping[str, str] = {"promise_held": "guarantee_held"}
# Earlier names of files: {present name: old name}.
FILES: Mapping[str, str] = {
    "disturbance.parquet": "strain.parquet",
    "disturbance.csv": "strain.csv",
    "disturbance.outer.csv": "strain.outer.csv",
    "disturbance.json": "strain.json",
    "disturbance.outer.json": "strain.outer.json",
}


def objects(file: str, found: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the objects of a file or table (`file`) with the present names of their keys."""
    return [named(file, one) for one in found]


def named(table: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns one object of a file or table with the present names of its keys."""
    names = NAMES.get(table, {})
    return {names.get(key, key): value for key, value in found.items()}


def figures(found: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the figures of summary.json with the present names of their keys and of the figures."""
    rows = objects("summary.json", found)
    return [{**one, "name": FIGURES.get(one["name"], one["name"])} if "name" in one else one for one in rows]


def judged(found: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the verdicts of verdicts.json with the present names of their subjects."""
    return [{**one, "of": SUBJECTS.get(one["of"], one["of"])} if "of" in one else {**one} for one in found]


def there(path: Path) -> Path | None:
    """Returns the path of a file under its present name, or under its earlier one; None if neither exists."""
    if path.exists() or path.name not in FILES:
        return path if path.exists() else None
    old = path.with_name(FILES[path.name])
    return old if old.exists() else None


def columns(table: str, there: Iterable[str]) -> dict[str, str]:
    """Returns {old: present} for the columns of a table that have another name now."""
    names = NAMES.get(table, {})
    return {name: names[name] for name in there if name in names}
