"""What to look at before trusting the numbers."""

from __future__ import annotations

from reports.proofs import proven
from reports.sections.section import Page, Part


def section(page: Page) -> Part:
    """Always there: that nothing speaks against the numbers is said too."""
    return page.part(
        "trust",
        "Before you trust it",
        notices=page.notices,
        suspect=page.suspect,
        proven=not proven(page.study).is_empty(),
    )
