"""Monitors of links: queues that overflowed although the file does not request it, and links at their
rate.
"""

from __future__ import annotations

import polars as pl

from capture import requested, trials
from capture.conservation.evidence import Evidence
from capture.monitors.monitor import Monitor, Reading, listed

OVERFLOW = Monitor("queue-overflow", 1, "directions")
# The code of the lab's finding of dropped packets; the lab knows each queue's requested limit
# (orchestrator.lab.evidence).
FINDING = "queue-drops"
# a share of this size moves the 95th percentile of a latency
AT_RATE = Monitor("link-rate", 5, "% of the samples")
FULL = 0.95  # share of the rate; in a sample above it the link was idle for less than 50 ms
FEWEST = 3  # least number of samples, each of one second


def overflow(e: Evidence) -> Reading:
    """Reports the link directions whose queue dropped packets although the file requests no loss there and no
    short or special queue. The lab itself reports this as a finding; this monitor shows it beside the
    others.
    """
    if trials.planned(e.plan):
        return OVERFLOW.untold("trials of a path overrun queues on purpose")
    if e.links is None:
        return OVERFLOW.untold("no queue of a link was sampled")
    found = [str(w.get("text")) for w in e.manifest.warnings if w.get("code") == FINDING]
    below = "no queue dropped a packet that the file does not ask it to drop"
    return OVERFLOW.read(len(found), listed(found), below)


def at_rate(e: Evidence) -> Reading:
    """Reports the link directions that carried at least 95 % of their rate in 5 % of the samples, and in at
    least three samples. The latency then depends more on their queues than on their delays.
    """
    rates = requested.rates(e.plan, e.events, e.impairments)
    if e.links is None or not rates:
        return AT_RATE.untold("no link has a rate")
    begin = pl.col("t_ns").shift(1).over("link", "direction")
    rows = e.links.sort("t_ns").with_columns(begin_ns=begin).drop_nulls(["bps", "begin_ns"])
    if e.scenario is not None:
        rows = rows.filter(pl.col("t_ns").is_between(*e.scenario))
    shares, found, told = [0.0], list[tuple[float, str]](), 0
    for (link, way), samples in rows.group_by("link", "direction", maintain_order=True):
        if steps := rates.get((str(link), str(way))):
            full, known = _full(samples, steps)
            told += known
            share = 100 * full / known if known else 0.0
            if full >= FEWEST:
                shares.append(share)
                waited = int(samples["backlog_packets"].max() or 0)  # type: ignore[arg-type]  # integers
                found.append((share, _said(f"{link} {way}", full, known, waited)))
    if not told:
        return AT_RATE.untold("no sample is of a link whose rate stayed the same")
    found.sort(reverse=True)
    reached = listed([text for share, text in found if share >= AT_RATE.threshold])
    return AT_RATE.read(max(shares), reached, "no link was at its rate for long")


def _full(samples: pl.DataFrame, steps: requested.Steps) -> tuple[int, int]:
    """Returns two numbers: the samples in which the link was at its rate, and the samples whose rate is known
    and did not change.
    """
    changes = pl.DataFrame(steps, schema={"from_ns": pl.Int64, "rate_bps": pl.Int64}, orient="row")
    at = samples.join_asof(changes.sort("from_ns"), left_on="t_ns", right_on="from_ns", strategy="backward")
    known = at.filter((pl.col("from_ns") <= pl.col("begin_ns")) & (pl.col("rate_bps") > 0))
    return known.filter(pl.col("bps") >= FULL * pl.col("rate_bps")).height, known.height


def _said(name: str, full: int, known: int, waited: int) -> str:
    queue = f", with up to {waited:,} packets in its queue" if waited else ""
    return f"link {name} was at its rate in {full} of {known} samples{queue}: more load only waits or is lost"
