"""Makes the page's sections on the link proof (requested, expected and measured values) and on the checks of
every run: comparisons with independent counts, and disturbances.
"""

from __future__ import annotations

from typing import Any

from reports.figures import registry
from reports.judged import said
from reports.proofs import WORDS, failures_first, proof_rows, proven
from reports.sections.section import Page, Part

ORDER = {"fails": 0, "cannot tell": 1, "holds": 2}
NAMED = 3  # largest number of runs that are named; for more, only their number is shown
MOST = 30  # largest number of rows on the page; the CSV has all


def section(page: Page) -> Part | None:
    """Returns the section: all checks of a single run, the worst verdicts first, and those that do not apply
    to it; or the failed checks of several runs; None if no manifest has checks, as in runs of earlier
    versions.
    """
    rows = [
        {"run": "" if page.study.single else cell.name, **check}
        for cell in page.study.cells
        for check in said(cell.run.path, "check", cell.run.manifest.checks, "text")
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: ORDER.get(row["verdict"], 0))  # a stable sort keeps the order of the runs
    counts = {word: sum(row["verdict"] == word for row in rows) for word in ORDER}
    shown = rows if page.study.single else _alike([row for row in rows if row["verdict"] == "fails"])
    absent = page.study.cells[0].run.manifest.inapplicable if page.study.single else []
    return page.part(
        "checks", "Checks", counts={w: n for w, n in counts.items() if n}, rows=shown, absent=absent
    )


def _alike(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns one row for each check and text of its finding, with the runs that have it."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        one = found.setdefault((str(row["name"]), str(row.get("text"))), {**row, "runs": []})
        one["runs"].append(row["run"])
    return [{**one, "runs": named(one["runs"])} for one in found.values()]


def named(runs: list[str]) -> str:
    """Returns the names of the runs, or only their number if there are more than NAMED."""
    return ", ".join(runs) if len(runs) <= NAMED else f"{len(runs)} runs"


def proof(page: Page) -> Part | None:
    """Returns the section and writes the table of all checks; None if no link was planned or checked."""
    found = proven(page.study)
    planned = any(cell.run.plan.links for cell in page.study.cells)
    if found.is_empty() and not planned:
        return None
    there = not found.is_empty()
    file = page.write_parts("proof", "Checks of all links", failures_first(page.study)) if there else ""
    return page.part(
        "proof-section",
        "Link checks",
        counts={word: n for word in WORDS if (n := found.get_column(word).sum())},
        total=found.get_column("runs").sum(),
        figures=page.figures(registry.PROOF) if there else (),
        rows=proof_rows(page.study, MOST),
        cut=found.height > MOST,
        file=file,
    )
