"""Defines a metric: a measured value with its subject, unit, n, interval and method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass, fields
from functools import cache
from pathlib import Path
from sys import intern
from typing import Any

from contract import rundir
from reports.metrics.stats import Estimate


@dataclass(frozen=True, slots=True)
class Of:
    """The subject of a metric. Each kind of metric sets some fields, the others are None; each field is a
    column of the tables.
    """

    nodes: str | None = (
        None  # set of nodes by function: broker, server, sender, receiver or client (see reports.roles)
    )
    # lab: the lab's kernel; outer: the machine around it; model: the modelled core; or the name of a host
    machine: str | None = None
    traffic_class: str | None = None  # name of the traffic class of flows
    guarantee: str | None = None  # delivery guarantee of the flows
    capture: str | None = None  # capture point
    bin: str | None = None  # bin of packet lengths in bytes, such as "640-1279"
    protocol: str | None = None  # path of protocols in a capture: "eth:ip:tcp"
    layer: str | None = None  # protocol layer of frames
    group: str | None = None  # group of nodes, as the topology file names it
    role: str | None = None  # role of that group's software: broker, server, client, utility, router
    link: str | None = None
    direction: str | None = None  # direction of that link: forward, reverse, or both (half duplex)
    queue_class: str | None = None  # band, class or tin of that direction's queue
    flow: str | None = None  # name of one bulk transfer
    stream: str | None = None  # stream of RFC 2544 trials
    frame_bytes: int | None = None  # frame size of RFC 2544 trials, with the frame check sequence
    event: str | None = None  # label of an event of the timeline
    # NODE/SOFTWARE that printed the value, and the part of its output after a space.
    program: str | None = None

    @property
    def words(self) -> str:
        """The fields of the subject that are set, separated by commas."""
        return ", ".join(str(value) for value in astuple(self) if value is not None)


OF = tuple(field.name for field in fields(Of))


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured value; `low` and `high` bound its 95 % interval and are None if the method gives none."""

    name: str
    of: Of
    value: float
    unit: str
    n: int
    low: float | None
    high: float | None
    method: str
    limits: tuple[str, ...] = ()  # limits that ended the searches for the value


def metric(name: str, of: Of, unit: str, estimate: Estimate, times: float = 1.0) -> Metric:
    """Returns a metric from an estimate; `times` converts the unit."""
    low = None if estimate.low is None else estimate.low * times
    high = None if estimate.high is None else estimate.high * times
    return Metric(name, of, estimate.value * times, unit, estimate.n, low, high, estimate.method)


def count(name: str, of: Of, value: float, unit: str, n: int, method: str) -> Metric:
    """Returns a metric without an interval, such as a count or an extreme."""
    return Metric(name, of, float(value), unit, n, None, None, method)


def find(metrics: Iterable[Metric], name: str, of: Of) -> Metric | None:
    """Returns the first metric of that name and subject; None if there is none."""
    return next((m for m in metrics if m.name == name and m.of == of), None)


def flat(one: Metric) -> dict[str, Any]:
    """Returns the metric as one row: name, the fields of `Of`, then value, unit, n, low, high,
    method, limits.
    """
    row = asdict(one)
    return {"name": row.pop("name"), **row.pop("of"), **row}


def read(run_dir: Path) -> list[Metric] | None:
    """Returns the metrics in the run's summary.json; None if it is missing or not readable as metrics."""
    try:
        return [_metric(row) for row in rundir.read_summary(run_dir)]
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _metric(row: dict[str, Any]) -> Metric:
    """Returns a metric from one row of summary.json, which it changes; strings that all runs of a campaign
    share are stored once.
    """
    of = _of(*(row.pop(field) for field in OF))
    alike = {field: intern(row[field]) for field in ("name", "unit", "method")}
    return Metric(**{**row, **alike, "of": of, "limits": tuple(row["limits"])})


_of = cache(Of)
