"""CPU, memory and bandwidth by group of nodes and their role."""

from __future__ import annotations

from reports.figures import registry
from reports.sections.section import Page, Part, entries
from reports.sections.tabular import by_subject

MEASURES = {
    "nodes": "nodes",
    "cpu": "CPU, % of a core",
    "memory": "memory, MB",
    "received": "receives, kB/s",
    "sent": "sends, kB/s",
}


def section(page: Page) -> Part | None:
    """Absent without node samples in a hold."""
    table = by_subject(page.study, {"group": "group", "role": "role"}, MEASURES)
    if table is None:
        return None
    figures = page.figures(registry.NODES)
    ticked = any(cell.run.ticked for cell in page.study.cells)
    return page.part("nodes", "Nodes", entries(figures), table=table.cut(), figures=figures, ticked=ticked)
