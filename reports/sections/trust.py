"""Makes the page's section on whether the study's numbers can be trusted, with the numbers of verdicts on
expectations, guarantees, claims, links and checks.
"""

from __future__ import annotations

from contract.verdict import HOLDS, OPEN, ORDER, Verdict
from reports import judged
from reports.proofs import proven
from reports.sections.section import Page, Part
from reports.trials import of_trials
from reports.warnings import Notice

SHOWN = 2  # number of notes that are not folded; reasons to suspect a run are never folded
# Subject of verdicts.json -> its title, in the order of the page.
SUBJECTS: dict[str, str] = {
    "expectation": "Expectations",
    "guarantee": "Delivery guarantees",
    "claim": "Claims",
    "proof": "Link checks",
    "check": "Checks of the run",
}
Counted = list[tuple[Verdict, int]]  # a verdict, and the number of them


def section(page: Page) -> Part:
    """Returns the section; every page has it, also if nothing questions the numbers."""
    proofs = proven(page.study)
    shown, folded = _parted(page.notices)
    counted = _judged(page)
    suspects = sum(bool(cell.run.manifest.suspect) for cell in page.study.cells)
    return page.part(
        "trust",
        "Verdict",
        notices=shown,
        folded=folded,
        suspect=page.suspect,
        doubted=0 if page.study.single else suspects,
        judged=counted,
        undecided=any(name == SUBJECTS["check"] and OPEN in dict(found) for name, found in counted),
        linked=page.paper is not None and bool(page.judged) and not of_trials(page.study),
        proven=not proofs.is_empty() and proofs.get_column(HOLDS).sum() == proofs.get_column("runs").sum(),
    )


def _parted(notices: list[Notice]) -> tuple[list[Notice], list[Notice]]:
    """Returns the notices that the page shows, and the folded ones. All notices that make a run suspect are
    shown; of more than SHOWN + 1 others, the first SHOWN are shown.
    """
    grave = [one for one in notices if one.level == "suspect"]
    notes = [one for one in notices if one.level != "suspect"]
    if len(notes) <= SHOWN + 1:
        return notices, []
    return [*grave, *notes[:SHOWN]], notes[SHOWN:]


def _judged(page: Page) -> list[tuple[str, Counted]]:
    """Returns each subject that has verdicts, with the number of each verdict, the worst first; empty without
    verdicts.
    """
    counts = judged.known(page.study.root)
    names = [*SUBJECTS, *(of for of in counts if of not in SUBJECTS)]
    found: list[tuple[str, Counted]] = []
    for of in names:
        known = counts.get(of, {})
        if listed := [(one, known[one]) for one in ORDER if known.get(one)]:
            found.append((SUBJECTS.get(of, f"{of.capitalize()}s"), listed))
    return found
