"""Makes the page's last sections: methods of measurement, versions and machine, and commands that repeat the
runs.
"""

from __future__ import annotations

from typing import Any

from reports.metrics.load import node_means
from reports.provenance import command, provenance
from reports.roles import phases
from reports.sections.section import Page, Part
from reports.study import Study
from reports.trials import of_trials
from reports.virtual import statement


def method(page: Page) -> Part:
    """Returns the section on the methods by which the page's figures were measured; every page has it."""
    names = set(page.study.compared.get_column("name").to_list())
    return page.part(
        "method",
        "Method",
        trials=of_trials(page.study),
        names=names,
        statement=statement(page.study),
        ticked=any(cell.run.ticked for cell in page.study.cells),
    )


def section(page: Page) -> Part:
    """Returns the section on versions, kernel, machine, parameters and phases; every page has it."""
    pairs = [*provenance(page.study), *_phases(page.study)]
    return page.part("provenance", "Provenance", pairs=pairs)


def _phases(study: Study) -> list[tuple[str, str]]:
    """Returns the name and length of each phase of a single run; empty for several runs."""
    if not study.single:
        return []
    return [(f"phase {name}", f"{span.seconds:.1f} s") for name, span in phases(study.cells[0].run).items()]


def repeat(page: Page) -> Part:
    """Returns the section of commands that repeat the runs, with links to the page's tables; writes the
    tables of all figures and of node means.
    """
    page.write("metrics", "All figures with their intervals", page.study.compared)
    if page.study.single:  # each run of several has a page of its own with this table
        page.write("nodes", "Means of each node over the hold", node_means(page.study.cells[0].run))
    return page.part("repeat", "Repeat it", cells=_cells(page), tables=page.tables)


def _cells(page: Page) -> list[dict[str, Any]]:
    return [
        {
            "name": c.name,
            "scenario": c.scenario,
            "series": c.series,
            "repetition": c.repetition,
            "seed": c.run.seed,
            "state": c.run.manifest.state or "unknown",
            "suspect": bool(c.run.manifest.suspect),
            "link": page.links.get(c.name, ""),
            "command": command(c.run),
        }
        for c in page.study.cells
    ]
