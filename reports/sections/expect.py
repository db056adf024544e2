"""Makes the page's section on the expectations of the topology file: how many hold, and each with
its verdict.
"""

from __future__ import annotations

from contract.verdict import FAILS, HOLDS, ORDER
from reports import judged
from reports.sections.section import Page, Part

BANNERS = {FAILS: "bad", HOLDS: "good"}


def section(page: Page) -> Part | None:
    """Returns the section, the worst verdicts first; None without recorded verdicts on expectations."""
    found = judged.of(page.study.root, "expectation")
    if not found:
        return None
    rows = sorted(found, key=lambda one: ORDER.index(one.verdict))
    return page.part(
        "expect",
        "Expectations",
        answer=judged.answer(found),
        banner=BANNERS.get(rows[0].verdict, "open"),
        suspect=page.suspect,
        rows=rows,
    )
