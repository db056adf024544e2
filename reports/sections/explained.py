"""Makes the page's section on what explains the figures: the monitors of the study's runs."""

from __future__ import annotations

from typing import Any

from reports.numbers import plain
from reports.sections.checks import named
from reports.sections.section import Page, Part

REACHED, UNTOLD = "reached", "cannot tell"


def section(page: Page) -> Part | None:
    """Returns the section; None if no manifest has monitors, as in runs of earlier versions."""
    rows = [
        {"run": "" if page.study.single else cell.name, **one}
        for cell in page.study.cells for one in cell.run.manifest.monitors
    ]  # fmt: skip
    if not rows:
        return None
    reached = _alike([row for row in rows if row["state"] == REACHED])
    shown = rows if page.study.single else []
    subject = "monitors" if page.study.single else "readings of monitors"
    untold = sum(row["state"] == UNTOLD for row in rows)
    return page.part(
        "explained",
        "Monitors",
        reached=reached,
        rows=shown,
        untold=f"{untold} of {len(rows)} {subject} cannot tell." if untold else "",
        amount=_amount,
    )


def _alike(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns one row for each monitor and sentence, with the runs that have it."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        found.setdefault((row["name"], row["text"]), {**row, "runs": []})["runs"].append(row["run"])
    return [{**one, "runs": named(one["runs"])} for one in found.values()]


def _amount(value: float | None, unit: str) -> str:
    """Returns the value with its unit; a dash if the monitor cannot tell."""
    return "-" if value is None else f"{plain(value)} {unit}"
