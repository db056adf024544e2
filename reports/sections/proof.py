"""The proof of the links: asked, what that makes, realised."""

from __future__ import annotations

from collections import Counter

from reports.figures import registry
from reports.figures.proof import proofs
from reports.sections.section import Page, Part
from reports.tables import proof_summary

MOST = 30  # rows in the page; the CSV has all


def section(page: Page) -> Part | None:
    """Absent where no link was to be proven."""
    proven = proofs(page.study.cells)
    planned = any(cell.run.plan.get("links") for cell in page.study.cells)
    if proven.is_empty() and not planned:
        return None
    file = page.write("proof", "Proof of every link", proven)
    rows = proof_summary(page.study)
    return page.part(
        "proof-section",
        "Proof of the links",
        counts=Counter(proven.get_column("verdict").to_list()),
        total=proven.height,
        figures=page.figures(registry.PROOF) if proven.height else (),
        rows=rows[:MOST],
        cut=len(rows) > MOST,
        file=file,
    )
