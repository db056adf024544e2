"""Makes the page's section on measured delays and their network-calculus bounds."""

from __future__ import annotations

from contract.verdict import of_truth
from reports.figures import registry
from reports.metrics.bounds import Bounded, bounded
from reports.sections.section import Page, Part, entries
from reports.sections.tabular import Column, Table

HEAD = (
    Column("class", text=True),
    Column("messages"),
    Column("largest measured, us"),
    Column("bound, us"),
    Column("share of the bound"),
    Column("messages above"),
    Column("verdict", text=True, chip=True),
    Column("reason", text=True, small=True),
)


def section(page: Page) -> Part | None:
    """Returns the section of the page; None for several runs, or if no class has a bound."""
    found = bounded(page.study.cells[0].run) if page.study.single else []
    if not any(one.worst_ns is not None for one in found):
        return None
    figures = page.figures(registry.BOUNDS, absent=True)
    table = Table(HEAD, tuple(_row(one) for one in found))
    said = page.study.cells[0].run.bounds
    return page.part(
        "bounds", "Bounds", entries(figures), table=table.cut(), figures=figures, assumed=said["assumptions"]
    )


def _row(one: Bounded) -> tuple[str, ...]:
    why = one.doubt or one.why
    if not one.worst_ns:
        return (one.traffic_class, "", "", "", "", "", of_truth(None), f"no bound: {why}")
    largest, used = "", ""
    if one.largest_ns is not None:
        largest, used = _us(one.largest_ns), f"{one.largest_ns / one.worst_ns:.0%}"
    counted = (f"{one.count:,}", largest, _us(one.worst_ns), used, f"{one.over:,}")
    reason = why if one.count else "; ".join(("nothing measured", *([why] if why else [])))
    return (one.traffic_class, *counted, of_truth(not one.over if one.count else None), reason)


def _us(ns: int) -> str:
    return f"{ns / 1e3:,.1f}"
