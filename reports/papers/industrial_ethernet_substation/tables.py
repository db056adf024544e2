"""Turns figures 3, 5, 6 and 7 into tables: each stream's delays, without and during file transfers, next to
the printed values.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from reports.papers.industrial_ethernet_substation.delays import ALONE, FTP, STREAMS, delay_metrics
from reports.papers.paper import Table
from reports.papers.published import reference
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
    "bays": "Figures 5 to 7. Delays from being sent to being received, us; the paper prints the largest of "
    "figures 5 and 6, whose stacks take 100 and 20 us.",
}
# The paper prints mean delays of the flat network, and largest delays of the bays.
HEADS = {
    "flat": ("stream, load", "mean", "paper", "99 %", "largest", "messages"),
    "bays": ("stream, load", "mean", "99 %", "largest", "paper", "messages"),
}


def tables(study: Study) -> tuple[Table, ...]:
    """Returns a table for each scenario and series, with a row for each stream and load that was measured;
    empty without a run of the paper.
    """
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
        made.append(Table("", said, HEADS[scenario], body, printed=(HEADS[scenario].index("paper"),)))
    return tuple(made)


def _row(stream: str, load: str, value: dict[tuple[str, str], dict[str, float]]) -> tuple[str, ...]:
    mean, p99, most = (value[stream, f"{load}_delay_{name}"] for name in ("mean", "p99", "max"))
    paper = str(reference(ROOM)["flat" if stream in FLAT else "bays"][stream][load])
    title = f"{NAMES[stream]}, {'no files' if load == ALONE else 'beside files'}"
    figures = [f"{one['value']:.1f}" for one in (mean, p99, most)]
    figures.insert(1 if stream in FLAT else 3, paper)
    return (title, *figures, f"{mean['n']:,.0f}")
