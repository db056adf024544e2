"""Makes the page's section on the hosts of a multi-host lab: their machines, their clocks, and the network
between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from reports.sections.section import Page, Part
from reports.sections.tabular import Column, Table

MS = 1e6
MBIT = 1e6


def section(page: Page) -> Part | None:
    """Returns the section and writes the table of the network between the hosts; None for several runs, or if
    the lab used a single host.
    """
    if not page.study.single:
        return None
    manifest = page.study.cells[0].run.manifest
    hosts, between = manifest.hosts, manifest.underlay
    if not hosts:
        return None
    file = page.write("underlay", "Network between the hosts", pl.DataFrame(between)) if between else None
    clocks = manifest.clocks
    return page.part(
        "hosts", "Hosts", hosts=_hosts(hosts, clocks).cut(), underlay=_underlay(between).cut(), file=file
    )


def _hosts(hosts: Mapping[str, Any], clocks: Mapping[str, Any]) -> Table:
    columns = ("host", "machine", "kernel", "cores", "nodes", "clock, ms", "clock error, ms", "drift, ppm")
    rows = []
    for name, facts in hosts.items():
        clock = clocks.get(name) or {}
        clock_cells = [_text(clock.get(key), scale) for key, scale in _CLOCK]
        machine = str(facts.get("machine") or "this machine")
        rows.append(
            (
                name,
                machine,
                str(facts.get("kernel", "-")),
                str(facts.get("cores", "-")),
                str(facts.get("nodes", "-")),
                *clock_cells,
            )
        )
    return Table(tuple(Column(title, text=n < 3) for n, title in enumerate(columns)), tuple(rows))


_CLOCK = (("offset_ns", MS), ("error_ns", MS), ("drift_ppm", 1.0))


def _underlay(between: list[dict[str, Any]]) -> Table:
    columns = (
        "hosts", "delay, ms", "jitter, ms", "loss, %", "rate, Mbit/s", "rate back, Mbit/s",
        "longest frame, B", "clock error, ms",
    )  # fmt: skip
    rows = tuple(
        (f"{one['a']} - {one['b']}", _text(one["delay_ns"], MS), _text(one["jitter_ns"], MS),
         _text(one["loss"], 0.01), _text(one["rate_bps"], MBIT), _text(one["rate_back_bps"], MBIT),
         str(one["frame_bytes"]), _text(one["clock_error_ns"], MS))
        for one in between
    )  # fmt: skip
    return Table(tuple(Column(title, text=n == 0) for n, title in enumerate(columns)), rows)


def _text(value: float | None, unit: float) -> str:
    return "-" if value is None else f"{value / unit:.3g}"
