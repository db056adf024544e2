"""Finds the cells of a campaign that are run again because the machine disturbed their run.

All runs of a cell are kept; the last one counts. A cell is run again until the machine leaves a run alone, or
until it has had `rerun_suspect` further runs. A run that is suspect for another reason is not run again. A
queue that overflows, a refused client or a crashed program may be a result of the setting. Repeating the run
until this does not happen would make the results too good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from contract import cells
from orchestrator.campaign import journal
from orchestrator.campaign.journal import COMPLETE, Json


def due(directory: Path, most: int) -> list[str]:
    """Returns the names of the cells whose last run is complete, suspect and disturbed by the machine, and
    that have had fewer than `most` further runs.
    """
    found = []
    for name, lines in _by_cell(directory).items():
        complete = [line for line in lines if line.get("state") in COMPLETE]
        last = lines[-1]
        if last.get("state") not in COMPLETE or len(complete) > most:
            continue
        if journal.suspect(directory, last) and journal.disturbed(directory, last):
            found.append(name)
    return found


def set_aside(directory: Path) -> dict[str, list[str]]:
    """Returns for each cell that was run again: the directories of its complete runs that do not count."""
    found = cells.set_aside(journal.lines(directory))
    return {name: [str(line.get("run_dir")) for line in lines] for name, lines in found.items()}


def _by_cell(directory: Path) -> Mapping[str, Sequence[Json]]:
    found: dict[str, list[Json]] = {}
    for line in journal.lines(directory):
        found.setdefault(str(line["cell"]), []).append(line)
    return found
