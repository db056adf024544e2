"""Monitors the 40 ms plateau of TCP: Nagle's algorithm at the sender holds a small segment until the one
before is acknowledged, and the receiver delays that acknowledgement.

A receiver delays an acknowledgement by 40 ms (TCP_DELACK_MIN of Linux) and up to one tick of its kernel. So
held messages arrive together, 40 to 50 ms plus a round trip after the messages before them.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from capture.conservation.evidence import Evidence
from capture.conservation.stacks import BARE
from capture.monitors.monitor import Monitor, Reading, listed

# a share of this size moves the 95th percentile
PLATEAU = Monitor("delayed-acks", 5, "% of a class's messages")
COUNTER = "TcpExtDelayedACKs"
LEAST_NS, MOST_NS = 38_000_000, 52_000_000  # ns from one burst of arrivals to the next
TOGETHER_NS = 2_000_000  # longest time (ns) between arrivals of one burst
HELD_NS = 5_000_000  # least waiting time of a message that was held
# Longest one-way time (ns) of a path on which 40 ms differ clearly from its round trip.
NEAR_NS = 10_000_000
FEWEST = 10  # least number of messages that were held
# Kinds of software whose messages do not use TCP.
NO_TCP = ("udp", *BARE)


def plateau(e: Evidence) -> Reading:
    """Reports the classes with messages that a delayed acknowledgement held: 5 % of their messages, and at
    least ten, arrived in bursts 40 to 50 ms apart and had waited. Reports nothing if no node's stack
    delayed acknowledgements.
    """
    if e.messages is None or e.stacks is None:
        return PLATEAU.untold("no messages, or no counters of stacks")
    arrived = _over_tcp(e)
    if arrived.is_empty():
        return PLATEAU.untold("no messages over TCP arrived")
    delayed = int(e.stacks.filter(counter=COUNTER)["value"].sum())
    held = {name: n for name, n in _held(arrived).items() if n >= FEWEST} if delayed else {}
    counts = dict(arrived.group_by("class").len().iter_rows())
    shares = {name: 100 * n / counts[name] for name, n in held.items()}
    over = sorted((n for n in shares if shares[n] >= PLATEAU.threshold), key=lambda n: -shares[n])
    said = listed([f"{held[n]:,} of {counts[n]:,} messages of class {n} arrived in bursts" for n in over])
    reached = (
        f"{said} 40 to 50 ms apart, and stacks delayed {delayed:,} acknowledgements: Nagle's algorithm held "
        "small segments; `nodelay` at the sender, or at its broker, removes the plateau"
    )
    return PLATEAU.read(max(shares.values(), default=0.0), reached, "no class waits for acknowledgements")


def _over_tcp(e: Evidence) -> pl.DataFrame:
    """Returns the first arrivals of messages over TCP on short paths, with the connection over which they
    arrived (`by`): published messages reach a receiver over its connection from the broker.
    """
    assert e.messages is not None
    kinds = {session.endpoint: role.kind for _, role, session in e.plan.sessions()}
    other = [end for end, kind in kinds.items() if kind in NO_TCP]
    rows = e.messages.drop_nulls(["receiver", "received_ns", "latency_ns"])
    sender = pl.when(pl.col("pattern") == "publish").then(pl.lit("")).otherwise(pl.col("sender"))
    shortest = pl.col("latency_ns").min().over("name", "receiver")
    return (
        rows.filter(~pl.col("receiver").is_in(other))
        .with_columns(by=pl.concat_str(sender, "receiver", separator=" "), shortest_ns=shortest)
        .filter(pl.col("shortest_ns") <= NEAR_NS)
        .sort("by", "received_ns", "scheduled_ns")
    )


def _held(arrived: pl.DataFrame) -> dict[str, int]:
    """Returns for each class the number of messages that waited and arrived in a burst 40 to 50 ms after the
    one before.
    """
    found: dict[str, int] = {}
    for rows in _bursts(arrived):
        waited = rows.filter(pl.col("latency_ns") - pl.col("shortest_ns") >= HELD_NS)
        for name, count in waited.group_by("class").len().iter_rows():
            found[name] = found.get(name, 0) + count
    return found


def _bursts(arrived: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yields for each connection the arrivals in bursts that came one delayed acknowledgement after the burst
    before, if the burst has a message that had waited.

    Two such bursts in a row are necessary, since a single one may follow a lost segment. A burst does not
    count if its messages were sent as they arrived: together, and as far apart.
    """
    for rows in arrived.partition_by("by"):
        gap = pl.col("received_ns").diff().fill_null(0)
        numbered = rows.with_columns(burst=(gap > TOGETHER_NS).cum_sum())
        begins = numbered.group_by("burst", maintain_order=True).agg(
            pl.col("received_ns").min().alias("begin_ns"),
            waited_ns=(pl.col("latency_ns") - pl.col("shortest_ns")).max(),
            due_ns=pl.col("scheduled_ns").min(),
            spread_ns=pl.col("scheduled_ns").max() - pl.col("scheduled_ns").min(),
            trip_ns=2 * pl.col("shortest_ns").max(),
        )
        after = pl.col("begin_ns").diff()
        late = after.is_between(LEAST_NS, MOST_NS + pl.col("trip_ns")) & (pl.col("waited_ns") >= HELD_NS)
        gathered = (pl.col("spread_ns") >= HELD_NS) | (pl.col("due_ns").diff() < LEAST_NS)
        marked = begins.with_columns(late=(late & gathered).fill_null(False))
        beside = pl.col("late").shift(1, fill_value=False) | pl.col("late").shift(-1, fill_value=False)
        yield numbered.join(marked.filter(pl.col("late") & beside).select("burst"), on="burst")
