"""What to look at before trusting the numbers."""

from __future__ import annotations

from capture.verdict import HOLDS
from reports.proofs import proven
from reports.sections.section import Page, Part


def section(page: Page) -> Part:
    """Always there: that nothing speaks against the numbers is said too."""
    found = proven(page.study)
    return page.part(
        "trust",
        "Before you trust it",
        notices=page.notices,
        suspect=page.suspect,
        proven=not found.is_empty() and found.get_column(HOLDS).sum() == found.get_column("runs").sum(),
    )
