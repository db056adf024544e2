"""Makes tables of figure 8's sizes and times, and of two quantities that the paper lacks: bytes on the wire
and garbage-collection pauses.
"""

from __future__ import annotations

import polars as pl

from reports.papers.middleware_2017.pairs import PATTERNS
from reports.papers.middleware_2017.split import READ, WRITE, pauses, times
from reports.papers.paper import Table
from reports.series import parameters
from reports.study import Study

SERIALISERS = (
    "Figure 8: bytes of a message with its object, 12 B of which are its flow and number, and how long the "
    "calm messages' objects took to be written and read, means over middleware and patterns. The paper says "
    "2 to 13 kB."
)
WIRE = (
    "Bytes on the wire for one push, both ways, headers and acknowledgements that came in time among them: "
    "what the middleware adds to the object of each serialiser."
)
PAUSES = (
    "Garbage collection while the load lasts: pauses of a program, the longest of all, and their share of "
    "its time."
)


def tables(study: Study) -> tuple[Table, ...]:
    """Returns the tables that have rows for this study."""
    return tuple(found for make in (_serialisers, _wire, _pauses) if (found := make(study)).rows)


def _serialisers(study: Study) -> Table:
    took = study.once(times).group_by("serialiser", "part").agg(pl.col("us").mean())
    us = {(name, part): value for name, part, value in took.iter_rows()}

    def said(name: str, part: str) -> str:
        return f"{us[name, part]:.0f}" if (name, part) in us else ""

    rows = [
        (name, f"{size:.0f}", said(name, WRITE), said(name, READ))
        for name, size in sorted(_sizes(study).items(), key=lambda one: one[1])
    ]
    return Table("", SERIALISERS, ("serialiser", "bytes", "write, us", "read, us"), tuple(rows))


def _sizes(study: Study) -> dict[str, float]:
    sizes: dict[str, list[float]] = {}
    pushed = [name for name in PATTERNS if name != "request"]
    for cell in study.cells:
        messages, said = cell.run.table("messages"), parameters(cell.run) | cell.levels
        if messages is None or "serialiser" not in said:
            continue
        sent = messages.filter(pl.col("class").is_in(pushed) & (pl.col("outcome") == "sent"))
        if not sent.is_empty():
            sizes.setdefault(str(said["serialiser"]), []).append(float(sent["bytes"].mean()))  # type: ignore[arg-type]  # of numbers
    return {name: sum(of) / len(of) for name, of in sizes.items()}


def _wire(study: Study) -> Table:
    rows = study.once(times).filter(pl.col("pattern") == "push")
    count = rows["use"].n_unique()
    whole = rows.group_by("serialiser").agg(pl.col("use").n_unique()).filter(pl.col("use") == count)
    common = sorted(whole["serialiser"].to_list())
    kept = (
        rows.filter(pl.col("serialiser").is_in(common))
        .group_by("use", "serialiser")
        .agg(pl.col("bytes").mean())
    )
    bytes_of = {(use, name): value for use, name, value in kept.iter_rows()}
    uses = sorted({use for use, _ in bytes_of}, key=lambda use: sum(bytes_of[use, name] for name in common))
    printed = tuple((use, *(f"{bytes_of[use, name]:.0f}" for name in common)) for use in uses)
    return Table("", WIRE, ("middleware", *common), printed)


def _pauses(study: Study) -> Table:
    rows = tuple(
        (use, f"{count:.1f}", f"{longest:.0f}", f"{100 * share:.1f}")
        for use, count, longest, share in study.once(pauses).iter_rows()
    )
    return Table("", PAUSES, ("middleware", "pauses", "longest, ms", "share, %"), rows)
