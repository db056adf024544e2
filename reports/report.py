"""Make the report of a run or a campaign: summary, figures, tables and the page."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from capture import manifest, regular, seal
from capture.conservation import registry
from capture.conservation.evidence import Evidence
from capture.manifest import Contents
from reports import judged, verdicts
from reports.damage import told
from reports.metrics.metric import write
from reports.page import render
from reports.rundir import Run
from reports.sections.section import Page
from reports.study import Study, study_of_campaign, study_of_run, study_of_runs

# What a page offers beside itself; section.py writes these.
FILES = re.compile(r'href="((?:figures|tables)/\w[\w.-]*)"')


def report(run_dir: Path) -> Path:
    """Write summary.json and report/ of a run; gives the page. RunDirectoryError if it is none."""
    with told(run_dir):
        study = study_of_run(run_dir, again=True)
        write(study.cells[0].metrics, run_dir / "summary.json")
        seal.renew(run_dir, ["summary.json"])
        if _check(study.cells[0].run):
            study = study_of_run(run_dir)  # whose manifest says more now
        verdicts.write(study)
        seal.renew(run_dir, [judged.NAME])
        return _write(study, {})


def _check(run: Run) -> bool:
    """Hold summary.json against the tables; whether the manifest says something else now."""
    checks = registry.of_summary(Evidence(run.path, run.plan, cast(Contents, run.manifest)))
    return manifest.checked(run.path, registry.findings(checks, manifest.CHECK), map(asdict, checks))


def campaign_report(campaign_dir: Path) -> Path:
    """Write summary.json and report/ of a campaign and of its runs; gives the campaign's page."""
    with told(campaign_dir):
        return _set_report(study_of_campaign(campaign_dir))


def set_report(title: str, root: Path, run_dirs: Sequence[Path]) -> Path:
    """Write the report of some runs side by side below `root`; gives the page."""
    return _set_report(study_of_runs(title, root, run_dirs))


def _set_report(study: Study) -> Path:
    study.root.mkdir(parents=True, exist_ok=True)
    rows = json.dumps(study.compared.to_dicts(), indent=1)
    regular.write(study.root / "summary.json", rows + "\n")
    links = _links(study)
    verdicts.write(study)
    return _write(study, links)


def _write(study: Study, links: dict[str, str]) -> Path:
    folder = study.root / "report"
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    before = _offered(page)
    regular.write(page, render(Page(study, folder, links)))
    for file in before - _offered(page):
        (folder / file).unlink(missing_ok=True)
    return page


def _offered(page: Path) -> set[str]:
    """The files that a page links to, relative; none where there is no page."""
    return set(FILES.findall(page.read_text(encoding="utf-8", errors="replace"))) if page.exists() else set()


def _links(study: Study) -> dict[str, str]:
    """The page of every run, relative; made where missing or older than the run's manifest."""
    found = {}
    for cell in study.cells:
        page, manifest = cell.run.path / "report" / "index.html", cell.run.path / "manifest.json"
        if not page.exists() or (manifest.exists() and page.stat().st_mtime < manifest.stat().st_mtime):
            report(cell.run.path)
        found[cell.name] = os.path.relpath(page, study.root / "report")
    return found
