"""Judges the claims of a work anew on published examples, by the rules of today.

The measurements are those of an example's tables (metrics.csv, and the figures of pairs of middleware). Where
they lack a figure that a rule needs, the verdict of the example's page counts, if the page was judged by the
same rule; else the claim cannot be told until the example is made anew.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars as pl
import published
import recovered
from ruamel.yaml import YAML

from contract import verdict
from reports.claims.claim import Claim
from reports.claims.evidence import WHOLE, Evidence, Factor, Level, Quantity
from reports.claims.verdict import OPEN, Judgement, Value
from reports.metrics.compare import SCHEMA, row
from reports.papers import PAPERS
from reports.papers.middleware_2017.gathered import of_pairs
from reports.papers.middleware_2017.pairs import LATENCY, PATTERNS, THROUGHPUT
from reports.papers.paper import Paper
from reports.study import Study

ROOT = Path(__file__).resolve().parents[2]
RENAMED = {"promise": "guarantee"}  # columns of earlier versions -> of today
PAIRS = "middleware_2017"  # whose claims are on figures over all pairs


@dataclass(frozen=True)
class Row:
    """The verdict on a claim, and the example that it comes from; "" if none has measured it."""

    claim: Claim
    judged: Judgement
    example: str


class Published(Evidence):
    """The measurements of published examples, in place of a study's."""

    def __init__(self, paper: Paper, factor: Factor, examples: Iterable[str]) -> None:
        self.study = Study(paper.title, Path(), (), False)
        self.factor, self.paired = factor, paper.name == PAIRS
        self.series: dict[tuple[str, Level], str] = {}
        self._known: dict[tuple[str, Level], Value | None] = {}
        tables = [] if self.paired else [_metrics(example) for example in examples]
        for example, table in zip(examples, tables, strict=False):
            self.series |= _levels(example, table, factor)
        if self.paired:
            whole = [(level, metric) for example in examples for level, metric in of_pairs(_pairs(example))]
        else:
            whole = list(paper.gathers(self.study))  # calculated without any run
        rows = [row((WHOLE, factor.label(level), m.name, m.of), [m]) for level, m in whole]
        tables.append(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
        self.series |= {(WHOLE, level): factor.label(level) for level, _ in whole}
        self.table = pl.concat(tables)

    def value(self, quantity: Quantity, level: Level) -> Value | None:
        key = (quantity.name, level)
        if key not in self._known:
            self._known[key] = super().value(quantity, level)
        return self._known[key]

    def has(self, quantity: Quantity) -> bool:
        """Whether an example has the figure at any level of its scenario."""
        return any(self.value(quantity, level) is not None for level in self.levels(quantity.scenario))

    def clients(self, scenario: str) -> int:
        raise LookupError(f"{scenario}: the number of clients is not in an example's tables")

    def curve(self, quantity: Quantity, level: Level) -> pl.DataFrame:
        raise LookupError(f"{quantity.name}: curves over the ramp are not in an example's tables")


def rows(paper: Paper, examples: tuple[str, ...]) -> list[Row]:
    """The verdict on each claim of the paper, in its order."""
    claims = paper.claims()
    found = Published(paper, claims.factor, examples)
    pages = {example: _on_page(example) for example in examples}
    return [_row(claim, found, pages) for claim in claims.claims]


def _row(claim: Claim, found: Published, pages: dict[str, dict[str, Judgement]]) -> Row:
    anew = _anew(claim, found)
    said = {example: page[claim.text] for example, page in pages.items() if claim.text in page}
    told = {example: one for example, one in said.items() if one.verdict != OPEN}
    best = told or {example: one for example, one in said.items() if not unmeasured(one)} or said
    example = next(iter(best), "")
    if anew is not None and not (told and unmeasured(anew)):
        return Row(claim, anew, _where(claim, found, pages) or example)
    if not claim.quantities:
        return Row(claim, claim.judge(found), "")
    if example and _same_rule(example, claim):
        return Row(claim, claim.settled(best[example]), example)
    older = f"; by an earlier rule its page says: {said[example].reason}" if example in told else ""
    reason = f"needs its example made anew: the published one lacks a figure that the rule needs{older}"
    return Row(claim, Judgement(OPEN, reason), example)


def _anew(claim: Claim, found: Published) -> Judgement | None:
    """The verdict by today's rule; None if the examples' tables lack something that it needs."""
    beside = claim.complete.names if claim.complete else ()  # without these a claim may still fail
    if not claim.quantities or not all(found.has(q) for q in claim.quantities if q.name not in beside):
        return None
    try:
        return claim.judge(found)
    except LookupError:
        return None


def unmeasured(judged: Judgement) -> bool:
    """Whether no figure was at hand at any of the rule's levels."""
    return judged.verdict == OPEN and all("needs " in part for part in judged.reason.split("; "))


def _where(claim: Claim, found: Published, pages: dict[str, dict[str, Judgement]]) -> str:
    """The example whose tables have the claim's first figure."""
    first = claim.quantities[0]
    if first.scenario == WHOLE:
        return next(iter(pages)) if found.paired else ""
    for example in pages:
        if not _metrics(example).filter(pl.col("scenario") == first.scenario).is_empty():
            return example
    return ""


def _same_rule(example: str, claim: Claim) -> bool:
    """Whether the example's page was judged by today's rule: as made.json has it, else by the words of the
    page, which shows the rules of the claims on its figures.
    """
    known = _made(example).get("rules", {}).get(claim.key)
    if known is not None:
        return bool(known == claim.rule_hash)
    return published.rules(example).get(claim.text) == claim.rule


def minutes(example: str, of: str = "") -> float | None:
    """The minutes of one core that the example's runs took, of cells that have `of` in their names; None if
    its tables do not say it.
    """
    journal = ROOT / "docs/examples" / example / "cells.jsonl"
    if not journal.exists():
        return None
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    latest = {line["cell"]: float(line.get("wall_s") or 0) for line in lines if of in line["cell"]}
    return sum(latest.values()) / 60


def command(example: str) -> str:
    """The command that made the example."""
    return str(_made(example)["command"])


@cache
def _made(example: str) -> dict[str, dict[str, str]]:
    text = (ROOT / "docs/examples" / example / "made.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


@cache
def _on_page(example: str) -> dict[str, Judgement]:
    """Verdict and reason by the text of each claim on the example's page."""
    return {text: Judgement(verdict.word(word), reason) for text, word, reason in published.judged(example)}


@cache
def _metrics(example: str) -> pl.DataFrame:
    """The example's metrics in today's columns, with those that only its page shows."""
    folder = ROOT / "docs/examples" / example / "report/tables"
    packed, plain = folder / "metrics.csv.gz", folder / "metrics.csv"
    content = gzip.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()
    frame = pl.read_csv(io.BytesIO(content), infer_schema=False)
    frame = frame.rename({old: new for old, new in RENAMED.items() if old in frame.columns})
    missing = [pl.lit(None).alias(name) for name in SCHEMA if name not in frame.columns]
    known = frame.with_columns(missing).select(pl.col(name).cast(of) for name, of in SCHEMA.items())
    shown = pl.DataFrame(recovered.rows(example), schema=SCHEMA, orient="row")
    return pl.concat([known, shown.filter(~pl.col("name").is_in(known["name"].unique().to_list()))])


def _levels(example: str, table: pl.DataFrame, factor: Factor) -> dict[tuple[str, Level], str]:
    """The series of each scenario and level; where no series states a level, its file's default counts."""
    found: dict[tuple[str, Level], set[str]] = {}
    for scenario, series in table.select("scenario", "series").unique().iter_rows():
        words = str(series).split(", ")
        for level in factor.levels:
            if f"{factor.name} {level}" in words or factor.label(level) in words:
                found.setdefault((scenario, level), set()).add(series)
    if not found:
        only = _default(example, factor)
        for scenario, series in table.select("scenario", "series").unique().iter_rows():
            if only is not None:
                found.setdefault((scenario, only), set()).add(series)
    return {key: min(names) for key, names in found.items() if len(names) == 1}


def _default(example: str, factor: Factor) -> Level | None:
    """The level of the factor that the example's topology has as default."""
    words = command(example).split()
    topology = ROOT / next(word for word in words if word.endswith(".yaml"))
    data = YAML(typ="safe").load(topology.read_text(encoding="utf-8")) or {}
    default = (data.get("parameters") or {}).get(factor.name, {}).get("default")
    return default if default in factor.levels else None


def _pairs(example: str) -> pl.DataFrame:
    """The pairs of middleware and serialiser, from the tables of figures 1 to 6."""
    return pl.DataFrame(
        list(_pair_rows(example)),
        schema={**dict.fromkeys(("use", "serialiser", "pattern", "name"), pl.String), "value": pl.Float64},
        orient="row",
    )


def _pair_rows(example: str) -> Iterator[tuple[str, str, str, str, float]]:
    folder = ROOT / "docs/examples" / example / "report/tables"
    figures = [(name, pattern) for name in (THROUGHPUT, LATENCY) for pattern in PATTERNS]
    for number, (name, pattern) in enumerate(figures, 1):
        text = (folder / f"figure-{number}.csv").read_text(encoding="utf-8")
        for line in csv.DictReader(io.StringIO(text)):
            yield line["use"], line["serialiser"], pattern, name, float(line["value"])


@cache
def of_work(name: str, examples: tuple[str, ...]) -> list[Row]:
    """The verdicts on the claims of the paper with this name."""
    return rows(PAPERS[name], examples)
