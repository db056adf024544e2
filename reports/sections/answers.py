"""Makes the page's sections that answer first: expectations, key figures, RFC 2544 tests and the comparison
of a campaign's levels.
"""

from __future__ import annotations

from collections import Counter

from contract.verdict import FAILS, HOLDS, ORDER
from reports import judged
from reports.figures import registry
from reports.headline import headline_rows
from reports.sections.section import Page, Part, entries
from reports.trials import RFC, of_trials, searches

BANNERS = {FAILS: "bad", HOLDS: "good"}


def expect(page: Page) -> Part | None:
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


def headline(page: Page) -> Part:
    """Returns the page's section of key figures; every page has it, also if no figure could be computed."""
    rows, trials = headline_rows(page.study), of_trials(page.study)
    conditions = page.study.conditions
    grouped = Counter(name for name, _ in conditions)
    head = rows[0]
    if not trials and len(grouped) > 1 and max(grouped.values()) > 1:
        head = (rows[0][0], *(series for _, series in conditions))
    picture = page.first(registry.first(page.study))
    return page.part(
        "headline",
        "Key figures",
        entries([picture] if picture else []),
        trials=trials,
        head=head,
        scenarios=list(grouped.items()) if head is not rows[0] else [],
        rows=rows[1:],
        picture=picture,
    )


def trials(page: Page) -> Part | None:
    """Returns the section on RFC 2544 tests; None for runs without trials of a path."""
    if not of_trials(page.study):
        return None
    figures = page.figures(registry.TRIALS, absent=True)
    return page.part(
        "trials", "RFC 2544", entries(figures), figures=figures, rfc=RFC, searches=searches(page.study)
    )


def levels(page: Page) -> Part | None:
    """Returns the section of the page; None if the study has a single series or the comparison
    cannot be drawn.
    """
    figures = page.figures(registry.LEVELS) if len(page.study.series) > 1 else ()
    return (
        page.part("levels", "Comparison of the levels", entries(figures), figures=figures)
        if figures
        else None
    )
