"""Selects messages of a run by name, by class, and by latency or loss."""

from __future__ import annotations

import polars as pl

from capture.errors import CaptureError
from capture.why.answer import Run


def select(
    run: Run, message: str | None = None, worst: int | None = None, traffic_class: str | None = None
) -> pl.DataFrame:
    """Returns rows of a run's messages: those of one message FLOW:SEQ, or of one class; with `worst`, at most
    that many, the lost messages first, then the slowest. CaptureError for a message or class that does not
    exist.
    """
    rows = run.messages
    if message is not None:
        rows = _one(run, message)
    if traffic_class is not None:
        classes = sorted(set(rows["class"]))
        rows = rows.filter(pl.col("class") == traffic_class)
        if rows.is_empty():
            raise CaptureError(
                f"--class {traffic_class!r}: is no class of this run; its classes: {', '.join(classes)}"
            )
    if worst is not None:
        owed = rows.filter(pl.col("receiver").is_not_null())
        rows = owed.sort("total_ns", "name", "seq", descending=[True, False, False], nulls_last=False)
        rows = rows.head(worst)
    return rows


def _one(run: Run, message: str) -> pl.DataFrame:
    name, _, number = message.rpartition(":")
    if not number.isascii() or not number.isdigit():
        raise CaptureError(f"{message!r}: has no number; write FLOW:SEQ, such as client1.meter:12")
    of_flow = run.messages.filter(pl.col("name") == name)
    if of_flow.is_empty():
        some = ", ".join(sorted(set(run.messages["name"]))[:5])
        raise CaptureError(
            f"{message!r}: this run has no messages of a flow {name!r}; it has {some or 'none'}"
        )
    rows = of_flow.filter(pl.col("seq") == int(number))
    if rows.is_empty():
        last = max(of_flow["seq"].to_list())
        raise CaptureError(f"{message!r}: has no record; the flow's messages are from 0 to {last}")
    return rows


def slowest(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the slowest messages of each class, among those that arrived."""
    arrived = rows.filter(pl.col("receiver").is_not_null()).drop_nulls("total_ns")
    order = arrived.sort("class", "total_ns", "name", "seq", descending=[False, True, False, False])
    return order.unique("class", keep="first", maintain_order=True)
