"""Continues a campaign's searches: derives the values of their next runs from the results so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from contract.verdict import HOLDS
from orchestrator.campaign import journal
from orchestrator.plan.expectations import planned
from orchestrator.topology import Campaign, Cell
from orchestrator.topology.search import Bound, Search, Trial, next_values

if TYPE_CHECKING:
    from reports.cell import Cell as RunCell
    from reports.metrics.metric import Metric


def further(campaign: Campaign, directory: Path) -> list[Trial]:
    """Returns the next trial for each topology and combination of other factors' levels whose search
    continues. Leaves out combinations with a run that is not complete. Empty if no search continues.
    """
    if not campaign.searches:
        return []
    from reports.study import study_of_run  # imported here: most campaigns have no search

    done = journal.latest(directory)
    found = []
    for cells in _combinations(campaign):
        if any(done.get(cell.name, {}).get("state") != "complete" for cell in cells):
            continue
        tried: dict[str, dict[int, bool]] = {name: {} for name in campaign.searches}
        for cell in cells:
            (run,) = study_of_run(directory / done[cell.name]["run_dir"]).cells
            for name, search in campaign.searches.items():
                value = cell.levels[name]
                tried[name][value] = tried[name].get(value, True) and _passed(search, run)
        if (values := next_values(campaign.searches, tried)) is not None:
            number = 1 + max(cell.point.number for cell in cells if cell.point)
            levels = {name: level for name, level in cells[0].levels.items() if name not in campaign.searches}
            found.append(Trial(cells[0].topology, levels, number, values))
    return found


def _combinations(campaign: Campaign) -> Iterator[Sequence[Cell]]:
    """Yields the cells of the campaign in groups: by topology and levels of factors without a search."""
    groups: dict[object, list[Cell]] = {}
    for cell in campaign.cells:
        levels = {name: str(level) for name, level in cell.levels.items() if name not in campaign.searches}
        groups.setdefault((cell.topology, *sorted(levels.items())), []).append(cell)
    yield from groups.values()


def _passed(search: Search, run: RunCell) -> bool:
    """Returns whether a run meets all expectations and bounds of a search."""
    from reports.expect.judge import of_run

    kept = all(of_run(run, planned(one)).verdict == HOLDS for one in search.expect)
    return kept and holds(search.holds, run.metrics)


def holds(bounds: Iterable[Bound], metrics: Sequence[Metric]) -> bool:
    """Returns whether the metrics of a run are within all bounds; a bound without a measured value counts as
    broken.
    """
    return all(_keeps(bound, one, metrics) for bound in bounds for one in bound.classes)


def _keeps(bound: Bound, name: str, metrics: Sequence[Metric]) -> bool:
    values = [one.value for one in metrics if one.name == bound.metric and one.of.traffic_class == name]
    return bool(values) and max(values) <= bound.at_most
