"""Computes throughput and latency of each pattern, for one middleware with one serialiser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from contract.plan import Flow
from reports.metrics.metric import Metric, Of, count
from reports.rundir import Run
from reports.series import parameters
from reports.study import Study

# Classes of topologies/papers/middleware.yaml -> the paper's names; NAME-greedy sends as fast as it can.
PATTERNS = {"request": "Request-Reply", "push": "Push-Pull", "publish": "Publish-Subscribe"}
GREEDY = "-greedy"
# Classes of topologies/papers/middleware-native.yaml are called ROLE-PATTERN, and its messages are as long as
# the object of a serialiser.
AGENT = "agent "
# The defaults of topologies/papers/middleware.yaml; the middleware's name states another device or network.
USUAL = {"cpu": "0.25 cores", "network": "100 Mbit/s", "delay": "0 ms"}
OTHERWISE = ", "
ROLES = ("udp", "tcp", "zeromq", "mqtt", "amqp")
LENGTHS = {1484: "protobuf-protostuff", 7085: "json-jackson", 10748: "xml-jaxb"}
THROUGHPUT, LATENCY = "pair_throughput", "pair_latency"
MS = 1e-6


def pair_metrics(run: Run) -> list[Metric]:
    """Returns the messages received per second and the mean time to the receiver in ms, for each pattern that
    was measured; empty for runs without a middleware and a serialiser.

    As in the paper, throughput counts messages from the first arrival on, for as long as messages were sent.
    The latency of a request is half its round trip.
    """
    messages = run.table("messages")
    if messages is None or not {"use", "serialiser"} <= parameters(run).keys():
        return []
    return [metric for pattern in PATTERNS for metric in _of_class(run, messages, pattern, pattern)]


def _of_class(run: Run, messages: pl.DataFrame, name: str, pattern: str) -> list[Metric]:
    of = Of(traffic_class=pattern)
    there = "round_trip_ns" if pattern == "request" else "latency_ns"
    calm = messages.filter(pl.col("class") == name).get_column(there).drop_nulls()
    found = []
    if calm.len():
        mean = float(calm.mean()) * MS * (0.5 if pattern == "request" else 1.0)  # type: ignore[arg-type]  # of numbers
        found.append(count(LATENCY, of, mean, "ms", calm.len(), "mean of the calm messages"))
    return [*found, *_throughput(run, messages, name + GREEDY, pattern, of)]


def _throughput(run: Run, messages: pl.DataFrame, name: str, pattern: str, of: Of) -> list[Metric]:
    flow = next((one for one in run.plan.flows if one.traffic_class == name), None)
    if flow is None:
        return []
    at = "replied_ns" if pattern == "request" else "received_ns"
    arrived = messages.filter(pl.col("class") == name).get_column(at).drop_nulls()
    if arrived.is_empty():
        return [count(THROUGHPUT, of, 0.0, "messages/s", 0, "nothing arrived")]
    length_ns = _length_ns(flow)
    counted = int((arrived - arrived.min() < length_ns).sum())
    how = f"received in {length_ns / 1e9:g} s from the first on"
    return [count(THROUGHPUT, of, counted / length_ns * 1e9, "messages/s", counted, how)]


def _length_ns(flow: Flow) -> int:
    """Returns the length of the flow's greedy window in ns; for a role of the agent, of the step of its
    schedule in which it fills the link.
    """
    if flow.schedule is None:
        return flow.stop_ns - flow.start_ns
    rates = flow.schedule.rates
    (begin, end) = (n for n, step in enumerate(rates) if step.from_ns > 0)
    return rates[end].from_ns - rates[begin].from_ns


def use_of(said: Mapping[str, Any]) -> str:
    """Returns the name of the middleware from a run's parameters, followed by the settings of device and
    network that are not usual.
    """
    other = (str(said[key]) for key, usual in USUAL.items() if str(said.get(key, usual)) != usual)
    return OTHERWISE.join((str(said["use"]), *other))


def usual(use: pl.Expr) -> pl.Expr:
    """Returns an expression that is true for middleware on the usual device and network, without vNET's own
    agent. The claims use only such pairs.
    """
    return ~use.str.contains(OTHERWISE, literal=True) & ~use.str.starts_with(AGENT)


def pairs(study: Study) -> pl.DataFrame:
    """Returns the columns use, serialiser, pattern, name (throughput or latency), value: means over
    repetitions.

    use: a middleware with its unusual settings of device and network, or `agent ROLE` for vNET's own agent.
    """
    rows = []
    for cell in study.cells:
        said = parameters(cell.run) | cell.levels
        for m in pair_metrics(cell.run):
            rows.append((use_of(said), str(said["serialiser"]), m.of.traffic_class, m.name, m.value))
        rows += _of_roles(cell.run)
    schema = ["use", "serialiser", "pattern", "name"]
    frame = pl.DataFrame(rows, schema={**dict.fromkeys(schema, pl.String), "value": pl.Float64}, orient="row")
    return frame.group_by(schema, maintain_order=True).agg(pl.col("value").mean())


def _of_roles(run: Run) -> list[tuple[str, str, str, str, float]]:
    messages = run.table("messages")
    if messages is None or run.plan.scenario != "agents":
        return []
    lengths = {flow.payload.bytes for flow in run.plan.flows} & LENGTHS.keys()
    return [
        (AGENT + role, LENGTHS[length], pattern, m.name, m.value)
        for length in lengths
        for role in ROLES
        for pattern in PATTERNS
        for m in _of_class(run, messages, f"{role}-{pattern}", pattern)
    ]
