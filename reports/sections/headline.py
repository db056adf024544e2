"""Makes the page's section of key figures: one table of at most a dozen rows, and one picture."""

from __future__ import annotations

from collections import Counter

from reports.figures import registry
from reports.headline import conditions_of, headline_rows
from reports.sections.section import Page, Part, entries
from reports.trials import of_trials


def section(page: Page) -> Part:
    """Returns the page's section of key figures; every page has it, also if no figure could be computed."""
    rows, trials = headline_rows(page.study), of_trials(page.study)
    conditions = conditions_of(page.study)
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
