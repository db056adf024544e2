"""Figures 3, 5, 6 and 7 as tables: each stream's delays, alone and beside files, with what is printed."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from reports.papers.industrial_ethernet_substation.delays import ALONE, FTP, STREAMS, delay_metrics
from reports.papers.paper import Table
from reports.papers.reference import reference
from reports.study import Study

ROOM = Path(__file__).parent
NAMES = {
    "pisa-controller": "PISA to controller",
    "controller-pisa": "controller to PISA",
    "ct-protection": "CT/VT to protection",
    "protection-cb": "protection to breaker",
    "ct-busbar": "CT/VT to busbar",
    "busbar-cb": "busbar to breaker",
}
FLAT = ("pisa-controller", "controller-pisa")
CAPTIONS = {
    "flat": "Figure 3. Delays from being sent to being received, us. The paper's text gives no more than "
    "these means; beside files: of the PISA that transfers them.",
    "bays": "Figures 5 and 6. Delays from being sent to being received, us; the paper prints the largest.",
}


def tables(study: Study) -> tuple[Table, ...]:
    """One for each scenario and series: a row for each stream and load."""
    found = study.added(delay_metrics)
    made = []
    for scenario, series in sorted(found.select("scenario", "series").unique().rows()):
        rows = found.filter((pl.col("scenario") == scenario) & (pl.col("series") == series))
        value = {(r["traffic_class"], r["name"]): r for r in rows.iter_rows(named=True)}
        body = tuple(
            _row(s, load, value)
            for s in STREAMS
            for load in (ALONE, FTP)
            if (s, f"{load}_delay_max") in value
        )
        said = f"{CAPTIONS[scenario]} {series if series and len(study.series) > 1 else ''}".strip()
        head = ("stream, load", "mean", "paper", "99 %", "largest", "paper", "messages")
        made.append(Table("", said, head, body, printed=(2, 5)))
    return tuple(made)


def _row(stream: str, load: str, value: dict[tuple[str, str], dict[str, float]]) -> tuple[str, ...]:
    mean, p99, most = (value[stream, f"{load}_delay_{name}"] for name in ("mean", "p99", "max"))
    paper = str(reference(ROOM)["flat" if stream in FLAT else "bays"][stream][load])
    beside = (paper, "") if stream in FLAT else ("", paper)
    title = f"{NAMES[stream]}, {'no files' if load == ALONE else 'beside files'}"
    figures = [f"{one['value']:.1f}" for one in (mean, p99, most)]
    return (title, figures[0], beside[0], figures[1], figures[2], beside[1], f"{mean['n']:,.0f}")
