"""Writes and reads baselines: files with the judged figures of a run or campaign, small enough to commit."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract import regular
from reports.compare.errors import CompareError, near
from reports.compare.figure import Key, judged, subject
from reports.compare.side import Sample, Side
from reports.metrics.metric import OF, Metric, Of

FORMAT = 1
MARK = "vnet_baseline"  # the key of the format, which marks a file as baseline
DIGITS = 9  # significant digits of a stored value; no clock of vNET is finer


@dataclass(frozen=True)
class Written:
    """A baseline file that `save` wrote: its path, its numbers of samples and figures, and its size."""

    path: Path
    samples: int
    figures: int
    size_bytes: int


def save(side: Side, path: Path, also: Iterable[str] = ()) -> Written:
    """Writes a side as a baseline file with its judged figures and those named in `also`, and makes the
    directory.

    CompareError if such a figure does not exist in any run, or if the file exists and is no baseline; one of
    another format, or with damaged figures, is replaced.
    """
    if path.exists():
        _marked(path)
    keep = set(also)
    known = {key for one in side.samples for key in one.metrics}
    if absent := keep - {name for name, _ in known}:
        name = sorted(absent)[0]
        raise CompareError(f"{side.name}: has no figure {name!r}; {near(name, {key[0] for key in known})}")
    chosen = [key for key in _in_order(side) if key[0] in keep or judged(*key)]
    path.parent.mkdir(parents=True, exist_ok=True)
    regular.write(path, _text(side, chosen))
    return Written(path, len(side.samples), len(chosen), path.stat().st_size)


def _in_order(side: Side) -> list[Key]:
    """Returns the figures of all samples, each once."""
    return list(dict.fromkeys(key for one in side.samples for key in one.metrics))


def _text(side: Side, chosen: list[Key]) -> str:
    """Returns the text of the file: one line for each figure and each sample, so that a change is a short
    difference.
    """
    units = {key: m.unit for one in side.samples for key, m in one.metrics.items()}
    head = {MARK: FORMAT, "of": Path(side.name).name}
    figures = [{"name": key[0], "unit": units[key], **subject(key[1])} for key in chosen]
    samples = [_sample(one, chosen) for one in side.samples]
    lines = [json.dumps(head)[:-1] + ","]
    for name, rows in (("figures", figures), ("samples", samples)):
        lines += [f' "{name}": [', ",\n".join("  " + json.dumps(row) for row in rows), " ],"]
    return "\n".join(lines)[:-1] + "\n}\n"


def _sample(one: Sample, chosen: list[Key]) -> dict[str, Any]:
    values = [_rounded(m.value) if (m := one.metrics.get(key)) else None for key in chosen]
    return {
        "name": one.name, "seed": one.seed, "schedule": one.schedule, "levels": one.levels,
        "facts": one.facts, "suspect": one.suspect, "virtual": one.virtual, "values": values,
    }  # fmt: skip


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def read_baseline(letter: str, path: Path) -> Side:
    """Returns the side that a baseline file describes; raises CompareError for another file or format."""
    found = _marked(path)
    number = found[MARK]
    if number != FORMAT:
        raise CompareError(
            f"{path}: is a baseline of format {number}, and this version of vnet reads format {FORMAT}; "
            "compare with the version that wrote it, or save it again"
        )
    try:
        keys = [_key(row) for row in found["figures"]]
        samples = tuple(_read(row, keys) for row in found["samples"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise CompareError(f"{path}: is damaged ({_short(error)}); save the baseline again") from error
    if not samples:
        raise CompareError(f"{path}: is damaged (it has no samples); save the baseline again")
    return Side(letter, str(path), samples)


def _marked(path: Path) -> dict[str, Any]:
    """Returns the content of a file that has the mark of baselines; raises CompareError without it."""
    try:
        found: dict[str, Any] = regular.read_json(path)
        found[MARK]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise CompareError(
            f"{path}: is no baseline ({_short(error)}); `vnet baseline save` writes one of a run or campaign "
            "to a new file"
        ) from error
    return found


def _key(row: dict[str, Any]) -> tuple[str, Of, str]:
    of = Of(**{field: row[field] for field in OF if field in row})
    return str(row["name"]), of, str(row["unit"])


def _read(row: dict[str, Any], keys: list[tuple[str, Of, str]]) -> Sample:
    metrics: dict[Key, Metric] = {
        (name, of): Metric(name, of, float(value), unit, 1, None, None, "from a baseline")
        for (name, of, unit), value in zip(keys, row["values"], strict=True)
        if value is not None
    }
    levels = {str(name): str(level) for name, level in row["levels"].items()}
    facts = {str(name): str(value) for name, value in row["facts"].items()}
    return Sample(
        str(row["name"]), levels, str(row["seed"]), str(row["schedule"]), facts, metrics,
        bool(row["suspect"]), bool(row["virtual"]),
    )  # fmt: skip


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
