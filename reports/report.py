"""Make the report of a run or a campaign: summary, figures, tables and the page."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from reports.figures import registry
from reports.figures.drawing import draw, save
from reports.figures.spec import Absent, Drawn, Spec
from reports.metrics.metric import write
from reports.page import Parts, render
from reports.papers import paper_of
from reports.study import Study, study_of_campaign, study_of_run, study_of_runs
from reports.tables import write_tables
from reports.trials import of_trials


def report(run_dir: Path) -> Path:
    """Write summary.json and report/ of a run; gives the page. RunDirectoryError if it is none."""
    study = study_of_run(run_dir)
    write(study.cells[0].metrics, run_dir / "summary.json")
    groups = {
        "proof": registry.PROOF,
        "paper": _of_paper(study),
        "levels": registry.LEVELS[1:],
        "time": registry.OVER_TIME,
    }
    if of_trials(study):
        groups = {"proof": registry.PROOF, "trials": registry.TRIALS, "time": registry.MACHINE}
    return _write(study, run_dir / "report", groups, {})


def campaign_report(campaign_dir: Path) -> Path:
    """Write summary.json and report/ of a campaign and of its runs; gives the campaign's page."""
    return _set_report(study_of_campaign(campaign_dir))


def set_report(title: str, root: Path, run_dirs: Sequence[Path]) -> Path:
    """Write the report of some runs side by side below `root`; gives the page."""
    return _set_report(study_of_runs(title, root, run_dirs))


def _set_report(study: Study) -> Path:
    rows = study.compared.to_dicts()
    study.root.mkdir(parents=True, exist_ok=True)
    (study.root / "summary.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    groups = {"paper": _of_paper(study), "levels": registry.LEVELS, "proof": registry.PROOF}
    if of_trials(study):
        groups = {"trials": registry.TRIALS, "proof": registry.PROOF}
    return _write(study, study.root / "report", groups, _links(study))


def _write(study: Study, folder: Path, groups: dict[str, tuple[Spec, ...]], links: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    figures: dict[str, list[Drawn | Absent]] = {}
    for group, specs in groups.items():
        figures[group] = [draw(spec, study) for spec in specs]
        for figure in figures[group]:
            if isinstance(figure, Drawn):
                save(figure, folder)
    paper = paper_of(study)
    judged = {} if paper is None or of_trials(study) else paper.judged(study)
    parts = Parts(figures, judged, write_tables(study, folder), links)
    page = folder / "index.html"
    page.write_text(render(study, parts), encoding="utf-8")
    return page


def _of_paper(study: Study) -> tuple[Spec, ...]:
    paper = paper_of(study)
    return () if paper is None else paper.figures(study)


def _links(study: Study) -> dict[str, str]:
    """The page of every run, relative; made where missing or older than the run's manifest."""
    found = {}
    for cell in study.cells:
        page, manifest = cell.run.path / "report" / "index.html", cell.run.path / "manifest.json"
        if not page.exists() or (manifest.exists() and page.stat().st_mtime < manifest.stat().st_mtime):
            report(cell.run.path)
        found[cell.name] = os.path.relpath(page, study.root / "report")
    return found
