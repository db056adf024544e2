"""Replaces `trace:` of links and media by the trace that its file holds, and sets the values of its first
sending state.
"""

from __future__ import annotations

import hashlib
from typing import Any

from pydantic import ValidationError

from contract.plan.traces import Trace

from ..language.beside import file_beside, text_of
from ..language.problem import Problem
from ..language.source import Document, Path
from . import round_trips
from .impairments import TraceFile
from .traces import OwnTrace, Read, TraceError, first_that_sends, read
from .validation import problems_of

PLACES = {"links": ("both", "forward", "reverse"), "segments": ("medium",)}
# The key that a column replaces.
_REPLACED = {"rate_bps": ("rate",), "delay_ns": ("delay", "delays"), "loss": ("loss", "gilbert_elliott")}


def expand(data: Any, document: Document, problems: list[Problem]) -> Any:
    """Returns the data with each `trace:` read from its file; reports invalid files and leaves those traces
    out. Runs before profiles, so that a trace overrides them.
    """
    for section, sides in PLACES.items():
        known = data.get(section) if isinstance(data, dict) else None
        if not isinstance(known, dict):
            continue
        found = {}
        for name, one in known.items():
            found[name] = one
            for side in sides if isinstance(one, dict) else ():
                values = one.get(side)
                if isinstance(values, dict) and "trace" in values:
                    at = (section, name, side)
                    found[name] = {**found[name], side: _direction(values, at, document, problems)}
        data = {**data, section: found}
    return data


def _direction(
    values: dict[str, Any], path: Path, document: Document, problems: list[Problem]
) -> dict[str, Any]:
    rest = {key: value for key, value in values.items() if key != "trace"}
    here = (*path, "trace")
    settings = _settings(values["trace"], here, document, problems)
    if settings is None:
        return rest
    file = file_beside(document, settings.file)
    if (text := text_of(file, document, here, problems)) is None:
        return rest
    try:
        found = _read(text, settings)
    except TraceError as error:
        problems.append(error.problem(file, "trace"))
        return rest
    first = first_that_sends(found.states)
    for field, keys in _REPLACED.items():
        for key in keys if getattr(first, field) is not None else ():
            if key in rest:
                rule = "conflicts with `trace`, whose file has it"
                problems.append(document.problem((*path, key), "", rule, "keep one of the two"))
                del rest[key]
    digest = hashlib.sha256(text.encode()).hexdigest()
    rest["trace"] = OwnTrace(
        Trace(settings.file, digest, found.states, found.length_ns, settings.repeat, found.bin_ns)
    )
    if first.rate_bps is not None:
        rest["rate"] = f"{first.rate_bps} bit/s"
    if first.delay_ns is not None:
        rest["delay"] = f"{first.delay_ns} ns"
    if first.loss is not None:
        rest["loss"] = f"{100 * first.loss:.10f} %"
    return rest


def _read(text: str, settings: TraceFile) -> Read:
    """Returns the content of a trace file of any form; raises TraceError at its first mistake."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    if round_trips.is_one(first):
        return round_trips.read(text, settings.column or "rtt", settings.bin)
    if settings.column is not None:
        rule = "has no columns of measured round trips, of which `column` names one"
        raise TraceError(1, first[:40], rule, "leave `column` out")
    return read(text, settings.repeat, settings.bin)


def _settings(value: Any, path: Path, document: Document, problems: list[Problem]) -> TraceFile | None:
    """Returns the settings of `trace:`; reports invalid ones and returns None."""
    try:
        return TraceFile.model_validate({"file": value} if isinstance(value, str) else value)
    except ValidationError as error:
        problems += problems_of(error, TraceFile, document, path)
        return None
