"""Writes the report of a run or campaign: summary, figures, tables and page."""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from pathlib import Path

from capture.conservation import registry
from capture.conservation.evidence import Evidence
from contract import manifest, regular, rundir, seal
from reports import verdicts
from reports.damage import told
from reports.metrics.metric import flat
from reports.page import Tell, render
from reports.rundir import Run
from reports.sections.section import Page
from reports.study import Study, study_of_campaign, study_of_run

# Links of a page to its files of figures and tables.
FILES = re.compile(r'href="((?:figures|tables)/\w[\w.-]*)"')


def _silent(_done: int, _total: int) -> None:
    """Ignores the progress that `render` reports."""


def report(run_dir: Path, tell: Tell = _silent) -> Path:
    """Writes summary.json, verdicts.json and report/ of a run, and returns the path of the page;
    RunDirectoryError if it is not a run, or its files are damaged.

    It also checks summary.json, which can add findings to the manifest, and renews the seal of both files.
    `tell` receives the number of finished sections and the number of all.
    """
    with told(run_dir):
        study = study_of_run(run_dir, again=True)
        rundir.write_summary(run_dir, map(flat, study.cells[0].metrics))
        seal.renew(run_dir, [rundir.SUMMARY])
        if _check(study.cells[0].run):
            study = study_of_run(run_dir)  # read again, because the manifest has new findings
        verdicts.write(study)
        seal.renew(run_dir, [rundir.VERDICTS])
        return _write(study, {}, tell)


def _check(run: Run) -> bool:
    """Checks summary.json against the tables and records checks and findings in the manifest; returns whether
    the manifest has changed.
    """
    checks = registry.of_summary(Evidence(run.path, run.plan, run.manifest))
    return manifest.checked(run.path, registry.findings(checks, manifest.CHECK), map(asdict, checks))


def campaign_report(campaign_dir: Path) -> Path:
    """Writes summary.json, verdicts.json and report/ of a campaign, and the pages of its runs that are
    missing or outdated; returns the path of the campaign's page. RunDirectoryError if it is not a campaign,
    or its files are damaged.
    """
    with told(campaign_dir):
        study = study_of_campaign(campaign_dir)
        links, written = _links(study)
        if written:  # a run's report adds checks and findings to its manifest
            study = study_of_campaign(campaign_dir)
        rundir.write_summary(study.root, study.compared.to_dicts())
        verdicts.write(study)
        return _write(study, links, _silent)


def campaign_verdicts(campaign_dir: Path) -> None:
    """Writes verdicts.json of a campaign without its pages; RunDirectoryError if it is not a campaign."""
    with told(campaign_dir):
        verdicts.write(study_of_campaign(campaign_dir))


def _write(study: Study, links: dict[str, str], tell: Tell) -> Path:
    folder = study.root / "report"
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    before = _offered(page)
    regular.write(page, render(Page(study, folder, links), tell))
    for file in before - _offered(page):
        (folder / file).unlink(missing_ok=True)
    return page


def _offered(page: Path) -> set[str]:
    """Returns the figure and table files that a page links, relative to it; empty without a page."""
    return set(FILES.findall(page.read_text(encoding="utf-8", errors="replace"))) if page.exists() else set()


def _links(study: Study) -> tuple[dict[str, str], bool]:
    """Returns the relative path of each run's page by cell, and whether reports of runs were written: of
    those whose page is missing or older than the manifest.
    """
    found, written = {}, False
    for cell in study.cells:
        page, manifest = cell.run.path / "report" / "index.html", cell.run.path / "manifest.json"
        if not page.exists() or (manifest.exists() and page.stat().st_mtime < manifest.stat().st_mtime):
            report(cell.run.path)
            written = True
        found[cell.name] = os.path.relpath(page, study.root / "report")
    return found, written
