"""The figures that one looks for first, in one table."""

from __future__ import annotations

from collections import Counter

from reports.headline import conditions_of, headline_rows
from reports.sections.section import Page, Part
from reports.trials import of_trials


def section(page: Page) -> Part:
    """Always there: that no figure could be computed is said too."""
    rows, trials = headline_rows(page.study), of_trials(page.study)
    conditions = conditions_of(page.study)
    return page.part(
        "headline",
        "Headline",
        trials=trials,
        head=rows[0] if trials else (rows[0][0], *(series for _, series in conditions)),
        scenarios=[] if trials else list(Counter(name for name, _ in conditions).items()),
        rows=rows[1:],
        score=None if page.paper is None else Counter(j.verdict for _, j in page.judged.values()),
    )
