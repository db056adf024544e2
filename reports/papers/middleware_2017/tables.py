"""Figure 8's sizes: what a message of each serialiser takes, from the run's own records."""

from __future__ import annotations

import polars as pl

from reports.papers.middleware_2017.pairs import PATTERNS
from reports.papers.paper import Table
from reports.series import parameters
from reports.study import Study

CAPTION = (
    "Figure 8, its sizes: bytes of a message with its object, 12 B of which are its flow and number. "
    "The paper says 2 to 13 kB."
)


def tables(study: Study) -> tuple[Table, ...]:
    """Serialisers by size; none where nothing was pushed or published."""
    sizes: dict[str, list[float]] = {}
    pushed = [name for name in PATTERNS if name != "request"]
    for cell in study.cells:
        messages, said = cell.run.table("messages"), parameters(cell.run) | cell.levels
        if messages is None or "serialiser" not in said:
            continue
        sent = messages.filter(pl.col("class").is_in(pushed) & (pl.col("outcome") == "sent"))
        if not sent.is_empty():
            sizes.setdefault(str(said["serialiser"]), []).append(float(sent["bytes"].mean()))  # type: ignore[arg-type]  # of numbers
    rows = [
        (name, f"{sum(of) / len(of):.0f}")
        for name, of in sorted(sizes.items(), key=lambda one: sum(one[1]) / len(one[1]))
    ]
    return (Table("", CAPTION, ("serialiser", "bytes"), tuple(rows)),) if rows else ()
