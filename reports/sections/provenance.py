"""Makes the page's section on versions, kernel, machine, parameters and phases of the runs."""

from __future__ import annotations

from reports.provenance import provenance
from reports.roles import phases
from reports.sections.section import Page, Part
from reports.study import Study


def section(page: Page) -> Part:
    pairs = [*provenance(page.study), *_phases(page.study)]
    return page.part("provenance", "Provenance", pairs=pairs)


def _phases(study: Study) -> list[tuple[str, str]]:
    """Returns the name and length of each phase of a single run; empty for several runs."""
    if not study.single:
        return []
    return [(f"phase {name}", f"{span.seconds:.1f} s") for name, span in phases(study.cells[0].run).items()]
