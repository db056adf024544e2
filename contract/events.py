"""Writes and reads the events of a run (changes by its timeline, its traces and its clients), one line each
in raw/events.jsonl.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from contract import regular

from .codec import build
from .plan import WAYS, Impairment

NAME = "raw/events.jsonl"


@dataclass(frozen=True, slots=True)
class Applied:
    """An event as it was applied; columns of events.parquet have the names of these fields, with `args` as
    JSON.
    """

    t_ns: int
    planned_ns: int
    phase: str
    action: str  # an action of the plan's events, `trace`, or one of live changes
    targets: list[str]
    args: dict[str, Any] = field(default_factory=dict)
    ok: bool = True
    error: str | None = None
    label: str = ""

    @classmethod
    def parse(cls, line: str) -> Applied:
        """Returns the event of a line; a planned time that is absent is the time of application, phase and
        targets then are empty. ValueError for a line that a crash has cut off, or without time and action.
        """
        found = json.loads(line)
        if not isinstance(found, dict):
            raise ValueError("is no object")
        try:
            given = {one.name: found[one.name] for one in fields(cls) if one.name in found}
            return cls(**{"planned_ns": found.get("t_ns"), "phase": "", "targets": [], **given})
        except TypeError as error:
            raise ValueError(str(error)) from error

    def write(self, run_dir: Path) -> dict[str, Any]:
        """Appends the event's line to raw/events.jsonl, and returns its fields."""
        fields = asdict(self)
        with (run_dir / NAME).open("a") as out:
            out.write(json.dumps(fields) + "\n")
        return fields


def read(run_dir: Path) -> list[Applied]:
    """Returns the events in raw/events.jsonl, without lines that are no event; an empty list without the
    file.
    """
    path = run_dir / NAME
    return list(
        parsed(regular.read_bytes(path).decode(errors="replace").splitlines() if path.exists() else ())
    )


def parsed(lines: Iterable[str]) -> Iterator[Applied]:
    """Yields the event of each line; skips lines that are no event, such as one that a crash cut off."""
    for line in lines:
        with suppress(ValueError):
            yield Applied.parse(line)


def impairments(args: str) -> Iterator[tuple[str, Impairment]]:
    """Returns an iterator over the directions and impairments that an `impair` event set, from the JSON text
    in column `args` of events.parquet. Directions without an impairment are left out.
    """
    found = json.loads(args)
    return ((way, build(Impairment, found[way])) for way in WAYS if found.get(way))
