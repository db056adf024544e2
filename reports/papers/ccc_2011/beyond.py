"""Adds a table that the paper lacks: for each kind of queue at the same load, the packets of each flow that
arrive in time.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from reports.papers.ccc_2011.intervals import FLOWS, deadlines_ns, text_of, within
from reports.papers.paper import Table
from reports.rundir import Run
from reports.series import parameters
from reports.study import Study

# The part of a traffic class in ccc-2011-queues.yaml before the flow -> the title of the scheme.
QUEUES = {"prio": "strict priority", "fq-codel": "fq_codel", "cake": "CAKE", "red": "RED"}
SCHEMES = {True: "gateways that cooperate", False: "the broker alone"}
SENDERS = ("a-hrt", "a-lrt", "a-be")
SPANS = ((60.0, 80.0), (90.0, 100.0))
Found = dict[tuple[str, str, float], list[float]]


def tables(study: Study) -> tuple[Table, ...]:
    """Returns the table of packets per second that arrive in time, the mean over repetitions: a row for each
    gateway scheme of the paper and for each other queue (QUEUES). Returns () if no run has one of QUEUES."""
    found: Found = {}
    for cell in study.cells:
        cooperate = bool((parameters(cell.run) | cell.levels).get("cooperate"))
        for key, value in _in_time(cell.run, SCHEMES[cooperate]):
            found.setdefault(key, []).append(value)
    if not any(scheme in QUEUES.values() for scheme, _, _ in found):
        return ()
    rows = [
        (scheme, *(text_of(found.get((scheme, flow, a))) for a, _ in SPANS for flow in SENDERS))
        for scheme in (*SCHEMES.values(), *QUEUES.values())
    ]
    head = (
        "in time, packets/s",
        *(f"{flow.upper()}, {a:g} to {b:g} s" for a, b in SPANS for flow in SENDERS),
    )
    caption = (
        "Beyond the paper: what of substation A's flows comes in time at a link of one rate. A-HRT sends 40, "
        "then 60 packets a second, the others 20 if nobody slows them down; best effort has no deadline."
    )
    return (Table("", caption, head, tuple(rows)),)


def _in_time(run: Run, scheme: str) -> Iterator[tuple[tuple[str, str, float], float]]:
    """Yields ((scheme, flow, begin of the span), packets/s that arrived in time) of a run with the paper's
    flows or with queues.
    """
    rows = within(run)
    if rows is None:
        return
    classes = set(rows["class"].unique())
    kinds = {f"{kind}-": title for kind, title in QUEUES.items() if f"{kind}-{FLOWS[0]}" in classes}
    prefixes = {"": scheme} if set(FLOWS) <= classes else kinds
    deadlines = deadlines_ns(run)
    for prefix, title in prefixes.items():
        for flow in SENDERS:
            name = prefix + flow
            of_flow = rows.filter((pl.col("class") == name) & pl.col("received_ns").is_not_null())
            for begin, end in SPANS:
                part = of_flow.filter(pl.col("at").is_between(begin, end, closed="left"))
                good = part.filter(pl.col("latency_ns") <= deadlines[name]) if name in deadlines else part
                yield (title, flow, begin), good.height / (end - begin)
