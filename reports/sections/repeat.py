"""Makes the page's section on the commands that repeat the runs and on the tables beside the page, and writes
the tables of all figures and of node means.
"""

from __future__ import annotations

from typing import Any

from reports.metrics.load import node_means
from reports.provenance import command
from reports.sections.section import Page, Part


def section(page: Page) -> Part:
    page.write("metrics", "All figures with their intervals", page.study.compared)
    if page.study.single:  # each run of several has its own page with this table
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
