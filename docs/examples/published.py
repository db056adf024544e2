"""Reads published examples: metrics with their intervals, the tables of the page, verdicts on claims.

A name that is not there is a SystemExit that says which example, which table and what there is.
"""

from __future__ import annotations

import csv
import gzip
import html
import io
import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

HERE = Path(__file__).resolve().parent
DIGITS = 4
# Verdicts as pages of earlier versions word them -> as all pages do now.
WORDS = {
    "does not hold": "fails",
    "cannot be judged": "cannot tell",
    "not judged": "cannot tell",
}
VERDICTS = ("holds", "fails", "cannot tell", "by construction")
Row = dict[str, str]
_RULE = re.compile(r'<q>([^<]*)</q>.*?<span class="rule">Rule: ([^<]*)\.</span>', re.DOTALL)


class _Tables(HTMLParser):
    """Caption and rows of each table of a page, as text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[tuple[str, list[list[str]]]] = []
        self._text: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append(("", []))
        elif tag == "tr" and self.tables:
            self.tables[-1][1].append([])
        elif tag in ("td", "th", "caption"):
            self._text = []

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("td", "th", "caption") or self._text is None or not self.tables:
            return
        text, self._text = " ".join("".join(self._text).split()), None
        rows = self.tables[-1][1]
        if tag == "caption":
            self.tables[-1] = (text, rows)
        elif rows:
            rows[-1].append(text)

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)


@cache
def _page(example: str) -> tuple[tuple[str, list[list[str]]], ...]:
    parser = _Tables()
    parser.feed((HERE / example / "report/index.html").read_text(encoding="utf-8"))
    return tuple(parser.tables)


def table(example: str, caption: str) -> list[list[str]]:
    """Head and rows of the page's table whose caption begins so, and ends so behind " ... "."""
    first, _, last = caption.partition(" ... ")
    found = [rows for title, rows in _page(example) if title.startswith(first) and title.endswith(last)]
    if len(found) != 1:
        captions = ", ".join(repr(title[:40]) for title, _ in _page(example) if title)
        raise SystemExit(
            f"figures: {example}: {len(found)} tables begin with {caption!r}; there are {captions}"
        )
    return found[0]


def cell(example: str, caption: str, row: str, column: str, beside: int = 0) -> str:
    """A cell by the first cell of its row (several of them joined by " | ") and by its head.

    beside: 1 for the cell behind it, where pages put what a paper printed.
    """
    head, *rows = table(example, caption)
    words = row.split(" | ")
    found = [cells for cells in rows if cells[: len(words)] == words]
    if column not in head or len(found) != 1:
        raise SystemExit(f"figures: {example}: {caption!r}: {len(found)} rows {row!r}; columns {head}")
    return found[0][head.index(column) + beside]


@cache
def _metrics(example: str) -> tuple[Row, ...]:
    file = HERE / example / "report/tables/metrics.csv"
    packed = file.with_name("metrics.csv.gz")
    content = gzip.decompress(packed.read_bytes()) if packed.exists() else file.read_bytes()
    return tuple(csv.DictReader(io.StringIO(content.decode())))


def metric(example: str, **of: str) -> str:
    """A figure of metrics.csv with its interval."""
    found = [row for row in _metrics(example) if all(row.get(key) == value for key, value in of.items())]
    if len(found) != 1:
        raise SystemExit(f"figures: {example}: {len(found)} rows of metrics.csv have {of}")
    value, low, high = (float(found[0][name]) for name in ("value", "low", "high"))
    return in_digits(value, (high - low) / 2)


def in_digits(value: float, half: float) -> str:
    """value ± half, at most four significant digits of the value; the value alone where half is below them.

    Published tables have six digits, of which the last is rounded already (shrink.py).
    """
    whole = 0 if value == 0 else math.floor(math.log10(abs(value)))
    fits = max(0, DIGITS - 1 - whole)
    decimals = fits if half == 0 else max(0, min(fits, 1 - math.floor(math.log10(half))))
    if half < 0.5 * 10.0**-decimals:
        return f"{value:,.{decimals}f}" if value != int(value) else f"{value:,.0f}"
    return f"{value:,.{decimals}f} ± {half:,.{decimals}f}"


def verdicts(examples: Iterable[str]) -> Counter[str]:
    """How many claims have each verdict; where one page cannot tell, that of another example counts."""
    by_claim: dict[str, str] = {}
    for example in examples:
        for claim, verdict in _claims(example):
            if by_claim.get(claim, "cannot tell") == "cannot tell":
                by_claim[claim] = verdict
    return Counter(by_claim.values())


def judged(example: str) -> list[tuple[str, str, str]]:
    """Text, verdict and reason of each claim on the page, in the order of the page."""
    head, *rows = _claim_table(example)
    column = head.index("verdict")
    return [(cells[column - 1], WORDS.get(cells[column], cells[column]), cells[-1]) for cells in rows]


def rules(example: str) -> dict[str, str]:
    """The rule of each claim that the page shows beside a figure, by the claim's text."""
    page = (HERE / example / "report/index.html").read_text(encoding="utf-8")
    return {html.unescape(text): html.unescape(rule) for text, rule in _RULE.findall(page)}


def _of_claims(header: list[str]) -> bool:
    """Whether a table's columns are those of the claims; pages of before 2026-11 have other words."""
    return "verdict" in header and not {"claim of the paper", "the paper says"}.isdisjoint(header)


def _claim_table(example: str) -> list[list[str]]:
    found = [rows for _, rows in _page(example) if rows and _of_claims(rows[0])]
    if len(found) != 1:
        raise SystemExit(f"figures: {example}: {len(found)} tables of claims")
    return found[0]


def _claims(example: str) -> list[tuple[str, str]]:
    head, *rows = _claim_table(example)
    column = head.index("verdict")
    words = [(cells[column - 1], WORDS.get(cells[column], cells[column])) for cells in rows]
    if unknown := {word for _, word in words} - set(VERDICTS):
        raise SystemExit(f"figures: {example}: verdicts {sorted(unknown)} are not known")
    return words
