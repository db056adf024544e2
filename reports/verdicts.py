"""Makes verdicts.json: every verdict on a run or campaign, once, after its reduction.

Other modules read the file through `reports.judged`. A directory without the file, such as a run of an
earlier version, is judged when its verdicts are needed, with its old words translated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from contract import findings, rundir, verdict
from contract.plan import Expectation, Plan
from contract.verdict import Judged
from reports import judged
from reports.cell import Cell
from reports.expect import judge
from reports.papers import paper_of
from reports.sections.validation import guarantees
from reports.study import Study, study_of_campaign, study_of_run

MOST_NAMED = 5  # largest number of incomplete runs that are named
Planned = Callable[[Plan], tuple[Expectation, ...]]


def of_cell(cell: Cell, guaranteed: Iterable[dict[str, Any]]) -> Iterator[Judged]:
    """Yields the verdicts on one run: link proof, delivery guarantees and checks. `guaranteed` has the rows
    of `guarantees` for this run.
    """
    for one in cell.run.proof:
        yield Judged("proof", one.name, one.verdict, one.reason)
    for row in guaranteed:
        reason = ": ".join(part for part in (row["rule"], row["reason"]) if part)
        yield Judged("guarantee", f"{row['class']}: {row['guarantee']}", verdict.word(row["verdict"]), reason)
    checks: list[dict[str, Any]] = cell.run.manifest.checks
    for check in checks:
        yield Judged(
            "check", str(check.get("name")), verdict.word(check.get("verdict")), str(check.get("text", ""))
        )


def _stated(plan: Plan) -> tuple[Expectation, ...]:
    """Returns the expectations of the file from which a plan was made."""
    return plan.expectations


def expected(cells: Sequence[Cell], planned: Planned = _stated) -> Iterator[Judged]:
    """Yields the verdicts on the expectations over the repetitions of one condition. `planned` returns the
    expectations for a plan; those of the first cell's plan count.
    """
    for one in planned(cells[0].run.plan):
        found = judge.of_repetitions(cells, one)
        yield Judged("expectation", one.text, found.verdict, found.reason)


def on_conditions(study: Study, planned: Planned | None = None) -> Iterator[Judged]:
    """Yields the verdicts on the expectations of a study: in each condition, over its repetitions; and a
    verdict `cannot tell` if runs are not complete. `planned` returns other expectations than those of the
    file.
    """
    conditions: dict[tuple[str, str], list[Cell]] = {}
    for cell in study.cells:
        conditions.setdefault((cell.scenario, cell.series), []).append(cell)
    for condition, cells in conditions.items():
        prefix = f"{study.named(*condition)}: " if len(conditions) > 1 else ""
        for one in expected(cells, planned or _stated):
            yield replace(one, name=f"{prefix}{one.name}")
    stated = any((planned or _stated)(cell.run.plan) for cell in study.cells)
    if stated and (absent := study.absent):
        named = ", ".join(absent[:MOST_NAMED]) + (" and others" if len(absent) > MOST_NAMED else "")
        text = f"{len(absent)} of {len(absent) + len(study.cells)} runs are not complete: {named}"
        yield Judged("expectation", "all runs of the campaign", verdict.OPEN, text)


def of_study(study: Study) -> Iterator[Judged]:
    """Yields the verdicts on the study as a whole: claims and, of a campaign, expectations."""
    if not study.single:
        yield from on_conditions(study)
    yield from of_claims(study)


def of_claims(study: Study) -> Iterator[Judged]:
    """Yields the verdicts on the claims of the paper that the study repeats; none without a paper."""
    paper = paper_of(study)
    for claim, found in paper.judged(study).values() if paper is not None else ():
        yield Judged("claim", claim.title, found.verdict, found.reason)


def by_cell(study: Study) -> dict[str, tuple[Judged, ...]]:
    """Judges each run of a study again and returns the verdicts by cell name: link proof, guarantees and
    checks and, for a study of one run, expectations.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in guarantees(study).to_dicts():
        rows.setdefault(str(row["cell"]), []).append(row)
    return {
        cell.name: (
            # a campaign's expectations are judged over its repetitions
            *(expected([cell]) if study.single else ()),
            *of_cell(cell, rows.get(cell.name, ())),
        )
        for cell in study.cells
    }


def write(study: Study) -> None:
    """Writes verdicts.json of a study: the verdicts (of a run its own and its paper's claims; of a campaign
    its expectations and claims), the counts of all verdicts, and the reason why each suspect run is suspect.
    """
    own = by_cell(study)
    whole = list(of_study(study))
    found = [*(own[study.cells[0].name] if study.single else ()), *whole]
    counted = judged.counts([*whole, *(one for of in own.values() for one in of)])
    suspect = {cell.name: findings.why(cell.run.manifest) for cell in study.cells}
    doubted = {name: why for name, why in suspect.items() if why is not None}
    rundir.write_verdicts(study.root, found, counted, doubted)


def read_or_made(study: Study) -> tuple[dict[str, tuple[Judged, ...]], tuple[Judged, ...]]:
    """Returns the verdicts on each run by cell name, and those on the study as a whole, from verdicts.json;
    if the file is missing or damaged, or a cell of the campaign ended after it was written, it judges now.

    Claims are only among the latter, and so are the expectations of a campaign.
    """
    written = {cell.name: judged.read(cell.run.path) for cell in study.cells}
    made = by_cell(study) if any(found is None for found in written.values()) else {}
    own = {
        name: made[name] if found is None else tuple(one for one in found if one.of != "claim")
        for name, found in written.items()
    }
    if not study.single:
        own = {name: tuple(one for one in of if one.of != "expectation") for name, of in own.items()}
    known = judged.read(study.root)
    if known is None or judged.stale(study.root):
        return own, tuple(of_study(study))
    return own, tuple(one for one in known if one.of == "claim" or not study.single)


def of_expectations(directory: Path) -> list[Judged]:
    """Returns the verdicts on the expectations of a run or campaign from verdicts.json; of a campaign with a
    cell that ended after it was written, judged now. Empty without the file.
    """
    if judged.stale(directory):
        return list(on_conditions(study_of_campaign(directory)))
    return judged.of(directory, "expectation") or []


def counted(directory: Path) -> judged.Counts:
    """Returns the counts of verdicts by subject: from verdicts.json if it is readable and not older than
    cells.jsonl (campaign) or plan.json (run), else judged now. Empty without that other file.
    """
    campaign = (directory / "campaign.json").exists()
    written, ended = directory / rundir.VERDICTS, directory / ("cells.jsonl" if campaign else "plan.json")
    if not ended.exists():
        return {}  # no run of the campaign has ended, or there is no plan
    if written.exists() and written.stat().st_mtime_ns >= ended.stat().st_mtime_ns:
        with suppress(OSError, ValueError):  # a damaged file, so the verdicts are made now
            return rundir.read_counts(directory)
    study = study_of_campaign(directory) if campaign else study_of_run(directory)
    own, whole = read_or_made(study)
    return judged.counts([*whole, *(one for of in own.values() for one in of)])
