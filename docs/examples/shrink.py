"""Copies a report into the tree, small: the page with its figures, and its tables.

The page holds each figure inline, so the files of figures (SVG, PNG, Vega-Lite) are left out, and the links
to them; links to the pages of single runs and to logs go too, since neither is kept. Tables are cut
to six digits; one above 20 kB is compressed. That of all metrics says what summary.json does, which is
left out.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import shutil
from pathlib import Path

CELLS = "cells.jsonl"
LARGE_BYTES = 20_000
DIGITS = 6

_FIGURE_LINK = re.compile(r'<a href="figures/[^"]*">[^<]*</a>')
_RUN_LINK = re.compile(r'<a href="\.\./(?:runs|raw)/[^"]*">(.*?)</a>', re.DOTALL)
_TABLE_LINK = re.compile(r'href="(tables/[^"#]+\.csv)"')


def page(source: Path, place: Path) -> None:
    """`source` is a campaign's or run's directory; `place` is empty and gets report/ and the journal."""
    report = place / "report"
    (report / "tables").mkdir(parents=True)
    for file in sorted((source / "report" / "tables").glob("*.csv")):
        _table(file, report / "tables")
    text = (source / "report" / "index.html").read_text(encoding="utf-8")
    text = _TABLE_LINK.sub(lambda found: f'href="{_there(report, found[1])}"', _unlinked(text))
    (report / "index.html").write_text(text, encoding="utf-8")
    if (source / CELLS).exists():
        shutil.copyfile(source / CELLS, place / CELLS)


def _unlinked(html: str) -> str:
    """The page without links to what is left out."""
    return _RUN_LINK.sub(r"\1", _FIGURE_LINK.sub("", html))


def _table(file: Path, into: Path) -> None:
    rows = csv.reader(io.StringIO(file.read_text(encoding="utf-8")))
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([short(cell) for cell in row] for row in rows)
    content = out.getvalue().encode()
    if len(content) <= LARGE_BYTES:
        (into / file.name).write_bytes(content)
    else:  # no time and no name in it: the same table gives the same bytes
        (into / f"{file.name}.gz").write_bytes(gzip.compress(content, mtime=0))


def short(cell: str) -> str:
    """A fraction with six digits; whole numbers and words as they are."""
    if "." not in cell:
        return cell
    try:
        return f"{float(cell):.{DIGITS}g}"
    except ValueError:
        return cell


def _there(report: Path, link: str) -> str:
    return link if (report / link).exists() else f"{link}.gz"


def replace(place: Path, fresh: Path) -> None:
    """`place` gets what `fresh` holds, and nothing else stays in it."""
    if place.exists():
        shutil.rmtree(place)
    place.mkdir()
    for path in sorted(fresh.iterdir()):
        path.rename(place / path.name)
