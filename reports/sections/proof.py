"""Makes the page's section on the link proof: requested, expected and measured values."""

from __future__ import annotations

from reports.figures import registry
from reports.proofs import WORDS, failures_first, proof_rows, proven
from reports.sections.section import Page, Part

MOST = 30  # rows in the page; the CSV has all


def section(page: Page) -> Part | None:
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
