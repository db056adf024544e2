"""Makes verdicts.json: every verdict on a run or campaign, once, after its reduction.

Everything else reads the file (`reports.judged`). A directory without one, such as a run of an earlier
version, is judged when its verdicts are needed, with its old words translated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contract import findings, rundir, verdict
from reports import judged
from reports.cell import Cell
from reports.judged import Judged
from reports.papers import paper_of
from reports.sections.validation import guarantees
from reports.study import Study, study_of_campaign, study_of_run


def of_cell(cell: Cell, guaranteed: Iterable[dict[str, Any]]) -> Iterator[Judged]:
    """Yields the verdicts on one run: link proof, delivery guarantees and checks. `guaranteed` has its rows
    of `guarantees`.
    """
    for one in cell.run.proof:
        name = f"{one['link']} {one['direction']} {one['quantity']}"
        yield Judged("proof", name, verdict.word(one["verdict"]), str(one.get("reason") or ""))
    for row in guaranteed:
        reason = ": ".join(part for part in (row["rule"], row["reason"]) if part)
        yield Judged("guarantee", f"{row['class']}: {row['guarantee']}", verdict.word(row["verdict"]), reason)
    checks: list[dict[str, Any]] = cell.run.manifest.checks
    for check in checks:
        yield Judged(
            "check", str(check.get("name")), verdict.word(check.get("verdict")), str(check.get("text", ""))
        )


def of_claims(study: Study) -> Iterator[Judged]:
    """Yields the verdicts on the claims of the paper that the study repeats; none without a paper."""
    paper = paper_of(study)
    for claim, found in paper.judged(study).values() if paper is not None else ():
        yield Judged("claim", claim.title, found.verdict, found.reason)


def by_cell(study: Study) -> dict[str, tuple[Judged, ...]]:
    """The verdicts on each run of a study by cell name, judged anew."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in guarantees(study).to_dicts():
        rows.setdefault(str(row["cell"]), []).append(row)
    return {cell.name: tuple(of_cell(cell, rows.get(cell.name, ()))) for cell in study.cells}


def write(study: Study) -> None:
    """Writes verdicts.json: the verdicts (of a run its own and its paper's claims; of a campaign the claims),
    the counts of all verdicts, and why each suspect run is suspect.
    """
    own = by_cell(study)
    claims = list(of_claims(study))
    found = [*(own[study.cells[0].name] if study.single else ()), *claims]
    counted = judged.counts([*claims, *(one for of in own.values() for one in of)])
    suspect = {cell.name: findings.why(cell.run.manifest) for cell in study.cells}
    doubted = {name: why for name, why in suspect.items() if why is not None}
    rundir.write_verdicts(study.root, map(asdict, found), counted, doubted)


def read_or_made(study: Study) -> tuple[dict[str, tuple[Judged, ...]], tuple[Judged, ...]]:
    """The verdicts on each run, and those on the study's claims: from verdicts.json, or judged now if it is
    missing.
    """
    written = {cell.name: judged.read(cell.run.path) for cell in study.cells}
    made = by_cell(study) if any(found is None for found in written.values()) else {}
    own = {
        name: made[name] if found is None else tuple(one for one in found if one.of != "claim")
        for name, found in written.items()
    }
    claims = judged.of(study.root, "claim")
    return own, tuple(of_claims(study) if claims is None else claims)


def counted(directory: Path) -> judged.Counts:
    """The counts of verdicts by subject: from verdicts.json if it is newer than the last run, else judged
    now; empty before a run has ended.
    """
    campaign = (directory / "campaign.json").exists()
    written, ended = directory / rundir.VERDICTS, directory / ("cells.jsonl" if campaign else "plan.json")
    if not ended.exists():
        return {}  # no run has ended yet
    if written.exists() and written.stat().st_mtime_ns >= ended.stat().st_mtime_ns:
        return judged.known(directory)
    study = study_of_campaign(directory) if campaign else study_of_run(directory)
    own, claims = read_or_made(study)
    return judged.counts([*claims, *(one for of in own.values() for one in of)])
