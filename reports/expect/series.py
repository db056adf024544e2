"""Computes the values of a metric over the intervals of a run, for expectations with always, eventually or
never.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from contract.metrics import PERCENTILES
from contract.plan import Expectation
from reports.expect.bootstrap import statistic
from reports.expect.span import span_of, whole_ns
from reports.expect.values import fits, name_of, unheard
from reports.metrics.links import whole
from reports.metrics.load import QUANTITIES
from reports.metrics.messages import by_guarantee
from reports.metrics.metric import Of
from reports.roles import Span, phases, roles
from reports.rundir import Run

_SENT = pl.col("sent_ns").fill_null(0) > 0
_HERE = pl.col("received_ns").is_not_null() | pl.col("replied_ns").is_not_null()
_DUE = pl.col("receiver").is_not_null() & (_SENT | _HERE)
_ARRIVED = pl.coalesce("received_ns", "replied_ns")
# Fate -> its messages, and the time at which each message counts: for a lost message, the time of its
# sending.
FATES: dict[str, tuple[pl.Expr, pl.Expr]] = {
    "scheduled": (pl.lit(True), pl.col("scheduled_ns")),
    "sent": (_SENT, pl.col("sent_ns")),
    "settled": (pl.col("outcome") == "settled", pl.col("settled_ns")),
    "unsent": (~_SENT, pl.col("scheduled_ns")),
    "expected": (_DUE, pl.coalesce("sent_ns", "scheduled_ns")),
    "received": (_DUE & _HERE, _ARRIVED),
    "lost": (_DUE & ~_HERE, pl.coalesce("sent_ns", "scheduled_ns")),
    "duplicated": (_DUE & _HERE & (pl.col("copies") > 1), _ARRIVED),
    "reordered": (_DUE & _HERE & pl.col("reordered"), _ARRIVED),
    "late": (pl.col("late").fill_null(False), pl.col("scheduled_ns")),
    "unanswered": (
        _DUE & (pl.col("pattern") == "request") & pl.col("replied_ns").is_null(),
        pl.coalesce("sent_ns", "scheduled_ns"),
    ),
}
ONCE = ("scheduled", "sent", "settled", "unsent")  # fates that a message has once, not for each receiver
LINKS = {"link_carried": ("bps", 1e-6), "link_queue_max": ("backlog_packets", 1.0)}
SAMPLED_NS = 1_000_000_000  # links and nodes are sampled once a second
MOST_GAP = 2.5  # intervals; values in a longer time without a sample are unknown
NODES = {name: (column, factor) for column, (name, _, factor) in QUANTITIES.items()}


@dataclass(frozen=True)
class Moments:
    """The values of one subject over `span`, each with the end of its interval in Unix ns. `unknown` has a
    sentence about intervals without a value; empty if all have one.
    """

    of: str
    span: Span
    ends_ns: list[int]
    values: list[float]
    unknown: str = ""


def series(run: Run, one: Expectation) -> list[Moments] | str:
    """Returns the series of each subject in the time of `during` or `after`, or else in the whole run for
    counts of messages and in the hold for other metrics. If there is none, returns the reason.
    """
    name = name_of(one)
    counted = name.startswith("messages_")
    span = (
        span_of(run, one)
        if one.during or one.after
        else whole_ns(run)
        if counted
        else phases(run).get("hold")
    )
    if span is None:
        label = one.during or one.after
        return f"the event {label} did not happen in the hold" if label else "the run has no hold"
    if counted or name.startswith(("latency_", "round_trip_")):
        found = list(_of_messages(run, one, name, span))
    else:
        found = list(_of_links(run, one, name, span) if name in LINKS else _of_nodes(run, one, name, span))
    return [
        moments for moments in found if moments.values or moments.unknown
    ] or f"no {one.name} was measured in that time"


def _of_messages(run: Run, one: Expectation, name: str, span: Span) -> Iterator[Moments]:
    table = run.table("messages")
    for of, rows in by_guarantee(table) if table is not None else ():
        if fits(of, one.of):
            if name.startswith("messages_"):
                yield _counted(of, rows, name.removeprefix("messages_"), span, one.every_ns)
            else:
                yield _times(of, rows, name, span, one.every_ns)


def _counted(of: Of, rows: pl.DataFrame, fate: str, span: Span, every_ns: int) -> Moments:
    """Returns the count of messages with a fate since the start of the span, at the end of each interval."""
    counts, at_ns = FATES[fate]
    once = rows.unique(["flow", "seq"], maintain_order=True) if fate in ONCE else rows
    happened = once.filter(counts).select(at_ns).to_series().drop_nulls().sort().to_numpy()
    ends = _ends(span, every_ns)
    before = int(np.searchsorted(happened, span.start_ns))
    reached = np.searchsorted(happened, ends, side="right") - before
    return Moments(of.words, span, ends.tolist(), reached.astype(float).tolist())


def _ends(span: Span, every_ns: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Returns the ends of the intervals of a span in Unix ns; the last interval may be shorter."""
    ends = np.arange(span.start_ns + every_ns, span.end_ns + every_ns, every_ns, dtype=np.int64)
    return np.minimum(ends, span.end_ns)


def _times(of: Of, rows: pl.DataFrame, name: str, span: Span, every_ns: int) -> Moments:
    """Returns the mean, percentile or maximum, in ms, of the messages that were scheduled in each interval.
    Intervals without such a message have no value; `unknown` counts them, except a shorter last one.
    """
    what, _, last = name.rpartition("_")
    inside = pl.col("scheduled_ns").is_between(span.start_ns, span.end_ns, closed="left")
    known = rows.filter(inside).drop_nulls(f"{what}_ns")
    if known.is_empty():
        return Moments(of.words, span, [], [], unheard(rows.filter(inside), what))
    place = ((pl.col("scheduled_ns") - span.start_ns) // every_ns).alias("place")
    quantile = None if last == "mean" else 1.0 if last == "max" else PERCENTILES[last]
    ends, found = [], []
    for (number,), part in sorted(known.with_columns(place).partition_by("place", as_dict=True).items()):
        times = part.get_column(f"{what}_ns").to_numpy().astype(np.float64)
        ends.append(min(span.end_ns, span.start_ns + (int(number) + 1) * every_ns))
        found.append(statistic(times, quantile) * 1e-6)
    whole_ones = (span.end_ns - span.start_ns) // every_ns  # the last interval may be shorter
    empty = whole_ones - sum(end <= span.start_ns + whole_ones * every_ns for end in ends)
    return Moments(of.words, span, ends, found, _unknown(empty, whole_ones, what))


def _unknown(empty: int, of: int, what: str) -> str:
    if not empty:
        return ""
    text = f"no message of {empty} of {of} intervals has a {what.replace('_', ' ')}"
    return f"{text}; longer intervals (`every`) or an expectation on messages_lost would tell"


def _of_links(run: Run, one: Expectation, name: str, span: Span) -> Iterator[Moments]:
    table, (column, factor) = run.table("links"), LINKS[name]
    if table is None:
        return
    found = []
    for (link, way), rows in whole(table).group_by("link", "direction", maintain_order=True):
        of = Of(link=str(link), direction=str(way))
        if fits(of, one.of):
            found.append(_sampled(of.words, rows, column, factor, span, one.every_ns))
    # throughput is judged in the direction that carries more
    if one.name != name and "direction" not in one.of and found:
        found = [max(found, key=lambda moments: sum(moments.values))]
    yield from found


def _of_nodes(run: Run, one: Expectation, name: str, span: Span) -> Iterator[Moments]:
    table, (column, factor) = run.table("nodes"), NODES[name]
    if table is None:
        return
    groups = {node.name: node.group for node in run.plan.nodes}
    acting = {node: kind for kind, nodes in roles(run).sets().items() for node in nodes}
    for (node,), rows in table.group_by("node", maintain_order=True):
        of = Of(nodes=acting.get(str(node)), group=groups.get(str(node)))
        wanted = {key: value for key, value in one.of.items() if key in asdict(of) and key != "role"}
        if fits(of, wanted):
            yield _sampled(str(node), rows, column, factor, span, one.every_ns)


def _sampled(of: str, rows: pl.DataFrame, column: str, factor: float, span: Span, every_ns: int) -> Moments:
    """Returns the mean of the samples in each interval (of queues: the largest), times `factor`. A sample
    belongs to the interval that ends with or after it; `unknown` reports a gap much longer than an interval.
    """
    known = rows.filter((pl.col("t_ns") > span.start_ns) & (pl.col("t_ns") <= span.end_ns)).drop_nulls(column)
    place = ((pl.col("t_ns") - span.start_ns - 1) // every_ns).alias("place")
    value = pl.col(column).max() if column == "backlog_packets" else pl.col(column).mean()
    parts = known.group_by(place).agg(t_ns=pl.col("t_ns").max(), value=value * factor).sort("place")
    times = parts.get_column("t_ns").to_list()
    borders = [span.start_ns, *known.get_column("t_ns").sort().to_list(), span.end_ns]
    gap_ns = max(after - before for before, after in pairwise(borders))
    unknown = f"no sample for {gap_ns / 1e9:.3g} s" if gap_ns > MOST_GAP * max(every_ns, SAMPLED_NS) else ""
    return Moments(of, span, times, parts.get_column("value").to_list(), unknown)
