"""Decides, for a campaign with `until`, how many times each setting is repeated: until the
confidence interval of each of its values is narrow, or `at_most` is reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from contract.enough import Enough
from orchestrator.campaign import journal
from orchestrator.plan.expectations import planned
from orchestrator.topology import Campaign, Cell

Repetitions = dict[int, int]  # index of a setting within a repetition -> its number of repetitions


def rule_of(campaign: Campaign) -> Enough | None:
    """Returns the rule of a campaign with `until`; None for one without."""
    until = campaign.until
    if until is None:
        return None
    return Enough(planned(until.chooses()), until.interval, until.at_least, until.at_most)


def grown(campaign: Campaign, directory: Path) -> Repetitions | None:
    """Returns the repetitions of all settings, from the results so far; None if every setting has ended.

    A setting ends when each value has a narrow interval, at the last look, or if none of its runs measured a
    value.
    """
    rule = rule_of(campaign)
    if rule is None:
        return None
    cells: dict[int, list[Cell]] = {}
    for cell in campaign.cells:
        cells.setdefault(cell.index % campaign.settings, []).append(cell)
    done = journal.latest(directory)
    now = {place: len(several) for place, several in cells.items()}
    later = {place: _wanted(cells[place], rule, done, directory) for place in now}
    return later if later != now else None


def _wanted(cells: Sequence[Cell], rule: Enough, done: dict[str, journal.Json], directory: Path) -> int:
    """Returns the number of repetitions that a setting with these cells has from now on."""
    from reports.enough import known
    from reports.study import study_of_run

    beyond = [look for look in rule.looks if look > len(cells)]
    complete = [cell for cell in cells if done.get(cell.name, {}).get("state") in journal.COMPLETE]
    if not beyond or not complete:
        return len(cells)
    runs = [study_of_run(directory / done[cell.name]["run_dir"]).cells[0] for cell in complete]
    found = known(runs, rule)
    return len(cells) if not found or all(one.enough for one in found) else beyond[0]
