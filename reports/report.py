"""Make the report of a run or a campaign: summary, figures, tables and the page."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from reports.claims.evidence import Evidence
from reports.claims.mqtt import judge_all
from reports.figures import registry
from reports.figures.drawing import draw, save
from reports.figures.spec import Absent, Drawn, Spec
from reports.metrics.compare import compare
from reports.metrics.metric import write
from reports.page import Parts, render
from reports.study import Study, study_of_campaign, study_of_run, study_of_runs
from reports.tables import write_tables
from reports.trials import of_trials


def report(run_dir: Path) -> Path:
    """Write summary.json and report/ of a run; gives the page. RunDirectoryError if it is none."""
    study = study_of_run(run_dir)
    write(study.cells[0].metrics, run_dir / "summary.json")
    groups = {
        "proof": registry.PROOF,
        "paper": _worth_showing(study, registry.PAPER),
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
    rows = compare(study).to_dicts()
    study.root.mkdir(parents=True, exist_ok=True)
    (study.root / "summary.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    groups = {"paper": registry.PAPER, "levels": registry.LEVELS, "proof": registry.PROOF}
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
    judged = {} if of_trials(study) else judge_all(Evidence(study))
    parts = Parts(figures, judged, write_tables(study, folder), links)
    page = folder / "index.html"
    page.write_text(render(study, parts), encoding="utf-8")
    return page


def _worth_showing(study: Study, specs: tuple[Spec, ...]) -> tuple[Spec, ...]:
    """The figures of the run's own scenario: a run of scenario 1 need not say that it is not scenario 2."""
    other = {
        "many-to-one": ("figure-12", "figure-13"),
        "many-to-many": ("figure-8", "figure-9", "figure-10", "figure-11"),
    }
    hidden = other.get(study.cells[0].shape, ())
    return tuple(spec for spec in specs if spec.key not in hidden)


def _links(study: Study) -> dict[str, str]:
    """The page of every run, relative; made where missing or older than the run's manifest."""
    found = {}
    for cell in study.cells:
        page, manifest = cell.run.path / "report" / "index.html", cell.run.path / "manifest.json"
        if not page.exists() or (manifest.exists() and page.stat().st_mtime < manifest.stat().st_mtime):
            report(cell.run.path)
        found[cell.name] = os.path.relpath(page, study.root / "report")
    return found
