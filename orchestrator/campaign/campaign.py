"""Runs the cells of a campaign, records the end of each, and resumes a campaign that did not finish."""

from __future__ import annotations

import difflib
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from contract import codec
from orchestrator.campaign import journal, repeating
from orchestrator.campaign.again import due, set_aside
from orchestrator.campaign.cells import one_by_one, planned, recover
from orchestrator.campaign.engines.dispatch import spread
from orchestrator.campaign.engines.engine import Engine
from orchestrator.campaign.journal import CampaignError, Json
from orchestrator.campaign.repeating import Repetitions
from orchestrator.campaign.searching import further
from orchestrator.campaign.settings import Settings
from orchestrator.plan.build import make_plan
from orchestrator.run.run import Observe
from orchestrator.topology import Campaign, load_campaign
from orchestrator.topology.conditions import failing
from orchestrator.topology.search import Trial

FORMAT = 1
# Keys of campaign.json that stay when a campaign grows. A different order would contradict the finished runs.
# A different number of repetitions could be chosen after a look at their figures.
KEPT = ("parameters", "kernel", "lab", "time", "seed", "fail_if", "order", "until", "rerun_suspect")


@dataclass(frozen=True)
class Summary:
    """The state of a campaign: number of cells in each state, and the estimated time of the remaining ones.

    set_aside: for each cell that was run again, the directories of earlier complete runs, which do not count.
    left_s: seconds for the remaining cells if the number of parallel cells stays as it is (`status` has the
    details); None before a cell is complete. page: the path of the campaign's report, None if there is none.
    """

    cells: int
    complete: int
    failed: int
    left: int
    left_s: float | None
    interrupted: bool = False
    page: Path | None = None
    suspect: Mapping[str, str] = field(default_factory=dict)  # complete cell -> the reason why it is suspect
    errors: Mapping[str, str] = field(default_factory=dict)  # failed cell -> its error
    set_aside: Mapping[str, list[str]] = field(default_factory=dict)


def open_campaign(
    settings: Settings,
    directory: Path,
    trials: Sequence[Trial] = (),
    repetitions: Repetitions | None = None,
) -> Campaign:
    """Loads the campaign with the cells of `trials` and `repetitions`, and writes campaign.json if there is
    none. If the directory's campaign has a part of these cells, replaces campaign.json; the cells that were
    run stay. Raises TopologyError if the campaign's file is wrong, CampaignError if the directory holds
    another campaign or other files.
    """
    campaign = load_campaign(settings.file, settings.parameters, trials, settings.seed, repetitions)
    wanted = described(settings, campaign)
    path = directory / "campaign.json"
    if not path.exists():
        _insist_on_conditions(settings, campaign)
        journal.insist_it_is_free(directory)
        journal.write_json(path, wanted)
        return campaign
    before = journal.read_campaign(directory)
    if grown(before, wanted):
        journal.write_json(path, wanted)
        return campaign
    if difference := compared(before, wanted):
        raise CampaignError(
            f"{directory}: holds a campaign begun with other content; undo the change to resume it, "
            f"or give another --out to begin anew:\n{difference}"
        )
    return campaign


def _insist_on_conditions(settings: Settings, campaign: Campaign) -> None:
    """Raises TopologyError if a condition of `--fail-if` is malformed, or names a part that a cell does not
    have.
    """
    if stated := failing(settings.fail_if) if settings.fail_if else None:
        for cell in campaign.cells:
            if cell.repetition == 1:  # other repetitions differ in their seeds only
                make_plan(replace(cell.loaded, conditions=stated), settings.lab, cell.seed)


def described(settings: Settings, campaign: Campaign) -> Json:
    """Returns the content of campaign.json: settings, factors, cells, and the text of each source file."""
    files = list(dict.fromkeys([campaign.path, *(cell.topology for cell in campaign.cells)]))
    rule = repeating.rule_of(campaign)
    return {
        "format": FORMAT,
        "name": campaign.name,
        "description": campaign.description,
        "command": _command(settings),
        "file": str(settings.file),
        "parameters": dict(settings.parameters),
        "kernel": settings.kernel,
        "lab": settings.lab,
        "time": settings.time,
        **({} if settings.seed is None else {"seed": settings.seed}),
        **({"fail_if": list(settings.fail_if)} if settings.fail_if else {}),
        "factors": campaign.factors,
        "repetitions": campaign.repetitions,
        **({"design": campaign.design} if campaign.design else {}),
        **({} if campaign.order == "listed" else {"order": {"kind": campaign.order, "seed": campaign.seed}}),
        **({} if rule is None else {"until": codec.plain(rule)}),
        **({"rerun_suspect": campaign.rerun_suspect} if campaign.rerun_suspect else {}),
        "cells": [planned(cell) for cell in campaign.cells],
        "files": {path: Path(path).read_text() for path in files},
    }


def _command(settings: Settings) -> str:
    words = ["vnet", "campaign", "run", str(settings.file)]
    words += [word for name, value in settings.parameters.items() for word in ("-p", f"{name}={value}")]
    words += ["--kernel", settings.kernel] if settings.kernel != "auto" else []
    words += ["--lab", settings.lab] if settings.lab else []
    words += ["--time", settings.time] if settings.time != "real" else []
    words += [] if settings.seed is None else ["--seed", str(settings.seed)]
    words += [word for text in settings.fail_if for word in ("--fail-if", text)]
    return shlex.join(words)


def compared(before: Json, now: Json) -> str:
    """Returns lines on the differences of two campaigns: parameters, kernel, lab, time, seed, `--fail-if`,
    and a diff of each source file; "" if these are equal.
    """
    lines: list[str] = []
    for key in ("parameters", "kernel", "lab", "time"):
        if before.get(key, now[key] if key != "time" else "real") != now[key]:
            lines.append(f"{key}: was {before.get(key)}, is {now[key]}")
    for key in ("seed", "fail_if"):  # None stands for the file's seed, or for no condition
        if before.get(key) != now.get(key):
            lines.append(f"{key}: was {before.get(key)}, is {now.get(key)}")
    if before.get("fail_if") != now.get("fail_if"):
        lines.append("`vnet expect DIR --fail-if` judges other conditions on the existing runs")
    old, new = before.get("files", {}), now["files"]
    for path in sorted(old.keys() | new.keys()):
        was, is_now = old.get(path, "").splitlines(), new.get(path, "").splitlines()
        lines += difflib.unified_diff(was, is_now, f"{path} (begun with)", f"{path} (now)", lineterm="", n=0)
    return "\n".join(lines)


def grown(before: Json, now: Json) -> bool:
    """Returns whether `now` has all cells of `before` and further ones, with equal settings (KEPT) and source
    files. The campaign's own file may differ, unless a cell of `now` uses it as its topology.
    """
    had, has = ({json.dumps(cell, sort_keys=True) for cell in one["cells"]} for one in (before, now))
    return (
        had < has
        and all(before.get(key) == now.get(key) for key in KEPT)
        and all(
            now["files"].get(path) == text
            for path, text in before["files"].items()
            if path != before["file"] or path in {cell["topology"] for cell in now["cells"]}
        )
    )


def run_campaign(
    settings: Settings,
    directory: Path,
    observe: Observe,
    engine: Engine | None = None,
    *,
    page: bool = True,
    retry_failed: bool = False,
) -> Summary:
    """Runs all cells that have not been run, and those that searches and `until` add; returns the campaign's
    state.

    Without an engine, runs one cell after the other in this process. Records a cell that fails, and
    continues. Ctrl-C ends the running cells and the campaign. page: writes the pages of the campaign and of
    its runs at the end; without it, only verdicts.json, if the files have expectations. retry_failed: also
    runs cells that failed earlier. Raises the errors of `open_campaign`, CampaignError if another process
    runs this campaign, KernelError if this machine cannot run a cell, and EngineError if the engine cannot.
    """
    with journal.locked(directory):
        campaign = open_campaign(settings, directory)
        recover(directory)
        failed = _failed(directory) if retry_failed else set()
        trials: list[Trial] = []
        while not (interrupted := _run(campaign, settings, directory, observe, engine, failed)):
            failed -= {cell.name for cell in campaign.cells}  # a cell that fails again is not run once more
            if again := _again(campaign, directory):
                observe({"event": "again", "cells": again})
                continue
            more, repetitions = further(campaign, directory), repeating.grown(campaign, directory)
            if not more and repetitions is None:
                break
            if repetitions is not None:
                observe({"event": "repeats", "repetitions": max(repetitions.values())})
            trials += more
            campaign = open_campaign(settings, directory, trials, repetitions)
        expected = settings.fail_if or any(cell.loaded.model.expect for cell in campaign.cells)
        written = _report(directory, observe, page) if page or expected else None
        jobs = engine.workers if engine else 1
        return status(directory, interrupted=interrupted, page=written, jobs=jobs)


def _run(
    campaign: Campaign,
    settings: Settings,
    directory: Path,
    observe: Observe,
    engine: Engine | None,
    failed: set[str],
) -> bool:
    """Runs the cells that have not ended and those of `failed`; if there are none, runs the suspect ones
    again. Returns whether the campaign was interrupted.

    A resumed campaign therefore keeps its order: a suspect cell does not run again before the others.
    """
    done = journal.latest(directory)
    left = {
        cell.name
        for cell in campaign.cells
        if cell.name in failed or done.get(cell.name, {}).get("state") not in journal.FINISHED
    }
    wanted = left or set(_again(campaign, directory))
    todo = [(number, cell) for number, cell in enumerate(campaign.cells, 1) if cell.name in wanted]
    total = len(campaign.cells)
    if engine is None:
        return one_by_one(campaign.boot, settings, directory, todo, total, observe)
    return spread(engine, settings, directory, todo, total, observe)


def _failed(directory: Path) -> set[str]:
    """Returns the names of the cells whose last run failed."""
    return {name for name, line in journal.latest(directory).items() if line.get("state") == "failed"}


def _again(campaign: Campaign, directory: Path) -> list[str]:
    """Returns the names of the cells that must run again: a disturbance of the machine made their last run
    suspect, and `rerun_suspect` allows a further run.
    """
    found = due(directory, campaign.rerun_suspect)
    return [cell.name for cell in campaign.cells if cell.name in found]


def status(directory: Path, *, interrupted: bool = False, page: Path | None = None, jobs: int = 0) -> Summary:
    """Reads the state of the campaign in `directory`; raises CampaignError if it holds none.

    `interrupted` is copied to the result, and `page`, if None, is the page that exists. jobs: number of cells
    that run at a time, from which the remaining time is computed; 0: as many as are running now, or one.
    """
    planned = journal.read_campaign(directory)["cells"]
    lines = journal.latest(directory)
    states = {name: line.get("state") for name, line in lines.items()}
    ended = {cell["cell"]: lines[cell["cell"]] for cell in planned if cell["cell"] in lines}
    why = {name: journal.suspect(directory, ln) for name, ln in ended.items() if states[name] == "complete"}
    errors = {name: str(ln.get("error")) for name, ln in ended.items() if states[name] == "failed"}
    complete = sum(states.get(cell["cell"]) == "complete" for cell in planned)
    failed = sum(states.get(cell["cell"]) == "failed" for cell in planned)
    left = len(planned) - complete - failed
    written = directory / "report" / "index.html"
    page = page or (written if written.exists() else None)
    suspect = {name: text for name, text in why.items() if text is not None}
    left_s = _left_s(directory, left, jobs or max(1, len(journal.in_flight(directory))))
    aside = set_aside(directory)
    return Summary(len(planned), complete, failed, left, left_s, interrupted, page, suspect, errors, aside)


def _left_s(directory: Path, left: int, jobs: int) -> float | None:
    """Returns the time in seconds for `left` cells, `jobs` at a time, if each takes as long as the mean of
    the complete ones; None before a cell is complete.
    """
    complete = [line for line in journal.lines(directory) if line.get("state") == "complete"]
    took = [float(line["wall_s"]) for line in complete if line.get("wall_s") is not None]
    return math.ceil(left / jobs) * sum(took) / len(took) if took else None


def _report(directory: Path, observe: Observe, page: bool) -> Path | None:
    """Writes the campaign's page and returns its path. Without `page`, only judges the campaign, and returns
    None. Does nothing and returns None while no run is complete.
    """
    from reports.report import campaign_report, campaign_verdicts

    if not any(line.get("state") == "complete" for line in journal.latest(directory).values()):
        return None
    if not page:
        campaign_verdicts(directory)
        return None
    observe({"event": "phase", "phase": "report", "text": "of the campaign"})
    return campaign_report(directory)
