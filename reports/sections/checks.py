"""The checks of every run: what was held against an independent count, and what could not be."""

from __future__ import annotations

from reports.judged import said
from reports.sections.section import Page, Part

ORDER = {"fails": 0, "cannot tell": 1, "holds": 2}


def section(page: Page) -> Part | None:
    """Absent where no manifest has any, as of runs of earlier versions."""
    rows = [
        {"run": "" if page.study.single else cell.name, **check}
        for cell in page.study.cells
        for check in said(cell.run.path, "check", cell.run.manifest.get("checks") or (), "text")
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: ORDER.get(row["verdict"], 0))  # stable: otherwise as the runs made them
    counts = {word: sum(row["verdict"] == word for row in rows) for word in ORDER}
    shown = rows if page.study.single else [row for row in rows if row["verdict"] == "fails"]
    return page.part("checks", "Checks", counts={w: n for w, n in counts.items() if n}, rows=shown)
