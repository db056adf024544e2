"""Names the conditions of a study by the levels that vary among its cells."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from reports import roles
from reports.rundir import Run

Levels = dict[str, Any]


def parameters(run: Run) -> Levels:
    """Returns the parameters of the run, from its manifest, or from its plan if the manifest has none."""
    return dict(run.manifest.parameters or run.plan.parameters)


def by_number(name: str) -> list[tuple[str, float]]:
    """Returns a sort key by the numbers in a name: "outage 3 s" comes before "outage 10 s"."""
    words, numbers = re.split(r"\d+(?:\.\d+)?", name), re.findall(r"\d+(?:\.\d+)?", name)
    return list(zip(words, [*map(float, numbers), 0.0], strict=True))


def series(runs: Sequence[tuple[Run, Levels]]) -> list[str]:
    """Returns the name of each run's condition among all of them, such as "clients 10, delay 20 ms".

    A factor that changes only the delivery guarantee is replaced by its name ("TCP" rather than "transport
    tcp"). Factors that the scenario's name or the rows already show (topology, frame sizes of trials) are
    left out. Without varying factors, the name is the delivery guarantee.
    """
    varying = [name for name in _varying([levels for _, levels in runs]) if not _told(name, runs)]
    guaranteed = {name for name in varying if _is_the_guarantee(name, runs)}
    found = []
    for run, levels in runs:
        words = [
            _guarantee(run) if name in guaranteed else f"{name} {levels[name]}"
            for name in varying
            if name in levels
        ]
        found.append(", ".join(words) or _guarantee(run))
    return found


def _varying(levels: list[Levels]) -> list[str]:
    """Returns the names of the factors with more than one level."""
    seen: dict[str, set[str]] = {}
    for one in levels:
        for name, level in one.items():
            seen.setdefault(name, set()).add(json.dumps(level))
    return [name for name, values in seen.items() if len(values) > 1]


def _told(name: str, runs: Sequence[tuple[Run, Levels]]) -> bool:
    """Returns whether the rows of a table (frame sizes of trials) or the scenario's name already show the
    factor's level.

    The name shows it if each scenario has one level and either the factor is the topology or scenario, or
    each name contains its level as a word.
    """
    if name == "frame_size" and any(run.of_trials for run, _ in runs):
        return True
    known = {(roles.scenario(run), json.dumps(levels.get(name))) for run, levels in runs}
    scenarios = {scenario for scenario, _ in known}
    if len(known) != len(scenarios):
        return False
    return name in ("topology", "scenario") or all(
        str(levels.get(name)).lower() in re.split(r"[\s,/]+", roles.scenario(run).lower())
        for run, levels in runs
    )


def _is_the_guarantee(name: str, runs: Sequence[tuple[Run, Levels]]) -> bool:
    """Returns whether each level of the factor has exactly one delivery guarantee, and a different one from
    the other levels.
    """
    pairs = {(json.dumps(levels.get(name)), tuple(roles.guarantees(run))) for run, levels in runs}
    levels, guarantees = {level for level, _ in pairs}, {names for _, names in pairs}
    return len(pairs) == len(levels) == len(guarantees) and all(len(names) == 1 for names in guarantees)


def _guarantee(run: Run) -> str:
    """Returns the only delivery guarantee of a run; "all messages" if it has several, "measured" if
    it has none.
    """
    found = roles.guarantees(run)
    return found[0] if len(found) == 1 else "all messages" if found else "measured"
