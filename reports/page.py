"""One self-contained HTML page from a study: no script, no network, every figure inline."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reports.claims.claim import Claim
from reports.claims.verdict import Judgement
from reports.figures.proof import proofs
from reports.figures.spec import Absent, Drawn
from reports.headline import conditions_of, headline_rows
from reports.papers import paper_of
from reports.provenance import command, provenance
from reports.roles import phases
from reports.study import Study
from reports.svg import data_uri, inline
from reports.tables import proof_summary, validation
from reports.trials import RFC, of_trials, searches
from reports.virtual import statement
from reports.warnings import notices

HERE = Path(__file__).parent
MOST_PROOFS = 30  # rows in the page; the CSV has all
GROUPS = {
    "paper": ("The paper's figures", "figures"),
    "levels": ("The levels side by side", "levels"),
    "time": ("Over time", "time"),
    "proof": ("Proof of the links", "proof"),
}


@dataclass(frozen=True)
class Parts:
    """What the page shows beside the study's own tables."""

    figures: dict[str, list[Drawn | Absent]]
    judged: dict[str, tuple[Claim, Judgement]]
    tables: dict[str, str]
    links: dict[str, str] = field(default_factory=dict)  # cell name -> its own page, relative


def render(study: Study, parts: Parts) -> str:
    """The page's HTML text."""
    return _environment().get_template("page.html.j2").render(_context(study, parts))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["chip"] = lambda word: {"holds": "good", "does not hold": "bad", "fails": "bad"}.get(
        word, "open"
    )
    return environment


def _context(study: Study, parts: Parts) -> dict[str, Any]:
    found = notices(study)
    rows = headline_rows(study)
    proven, shown = proofs(study.cells), proof_summary(study)
    conditions = conditions_of(study)
    trials = of_trials(study)
    paper = None if trials else paper_of(study)
    return {
        "css": Markup((HERE / "page.css").read_text(encoding="utf-8")),
        "title": study.title,
        "subtitle": _subtitle(study),
        "study": study,
        "statement": statement(study),
        "notices": found,
        "suspect": any(n.level == "suspect" for n in found),
        "of_trials": trials,
        "rfc": RFC,
        "searches": searches(study),
        "head": rows[0] if trials else (rows[0][0], *(series for _, series in conditions)),
        "groups_of_columns": [] if trials else list(Counter(name for name, _ in conditions).items()),
        "rows": rows[1:],
        "groups": {key: [_figure(f, parts) for f in figures] for key, figures in parts.figures.items()},
        "group_titles": GROUPS,
        "score": Counter(j.verdict for _, j in parts.judged.values()),
        "claims": list(parts.judged.values()),
        "paper": paper,
        "paper_tables": {} if paper is None else {t.figure: t for t in paper.tables(study)},
        "proof_counts": Counter(proven.get_column("verdict").to_list()),
        "proof_rows": shown[:MOST_PROOFS],
        "proof_total": proven.height,
        "proof_cut": len(shown) > MOST_PROOFS,
        "validation": validation(study).to_dicts(),
        "provenance": provenance(study),
        "phases": _phases(study),
        "topology": _topology(study),
        "cells": _cells(study, parts),
        "repeat": study.command,
        "tables": parts.tables,
    }


def _subtitle(study: Study) -> str:
    runs = len(study.cells)
    text = ", ".join(study.scenarios) + (": " + ", ".join(study.series) if study.series else "")
    return text if study.single else f"{text}; {runs} run{'s' if runs != 1 else ''}"


def _figure(figure: Drawn | Absent, parts: Parts) -> dict[str, Any]:
    spec = figure.spec
    drawn = isinstance(figure, Drawn)
    return {
        "spec": spec,
        "svg": Markup(inline(figure.svg, spec.key, spec.title)) if isinstance(figure, Drawn) else "",
        "reason": "" if isinstance(figure, Drawn) else figure.reason,
        "claims": [parts.judged[key] for key in spec.claims if key in parts.judged],
        "files": [f"figures/{spec.key}.{kind}" for kind in ("svg", "png")] + [f"tables/{spec.key}.csv"]
        if drawn
        else [],
    }


def _phases(study: Study) -> list[tuple[str, str]]:
    """Phase and its length, of the first run, for a single run's page."""
    if not study.single:
        return []
    return [(name, f"{span.seconds:.1f} s") for name, span in phases(study.cells[0].run).items()]


def _topology(study: Study) -> list[tuple[str, str]]:
    """Caption and image of each different topology drawn in the runs."""
    seen: dict[str, str] = {}
    for cell in study.cells:
        image = data_uri(cell.run.path / "topology.svg")
        if image and image not in seen:
            seen[image] = "" if study.single else f"{cell.scenario} ({cell.run.lab})"
    # the same topology at three levels is one picture
    by_caption = {caption: image for image, caption in reversed(seen.items())}
    return list(reversed(by_caption.items()))


def _cells(study: Study, parts: Parts) -> list[dict[str, Any]]:
    return [
        {
            "name": c.name,
            "scenario": c.scenario,
            "series": c.series,
            "repetition": c.repetition,
            "seed": c.run.manifest.get("seed", c.run.plan.get("seed", "")),
            "state": c.run.manifest.get("state") or "unknown",
            "suspect": bool(c.run.manifest.get("suspect")),
            "link": parts.links.get(c.name, ""),
            "command": command(c.run),
        }
        for c in study.cells
    ]
