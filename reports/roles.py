"""Derives from a run's plan and manifest the roles of its nodes (broker, server, sender, receiver), its
phases and its scenario.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from reports.rundir import Run

SECOND = 1_000_000_000


@dataclass(frozen=True)
class Roles:
    """The names of the nodes in each role; clients that both send and receive are only in `both`."""

    brokers: tuple[str, ...]
    servers: tuple[str, ...]
    senders: tuple[str, ...]
    receivers: tuple[str, ...]
    both: tuple[str, ...]

    def sets(self) -> dict[str, tuple[str, ...]]:
        """Returns the nodes of each role by its name; empty roles are left out. Clients that both send and
        receive have the name "client".
        """
        named = {
            "broker": self.brokers,
            "server": self.servers,
            "receiver": self.receivers,
            "sender": self.senders,
            "client": self.both,
        }
        return {name: nodes for name, nodes in named.items() if nodes}


@dataclass(frozen=True)
class Span:
    """A phase of a run, or another stretch of its time, from start to end in Unix ns; the end is later than
    the start.
    """

    name: str
    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / SECOND


def roles(run: Run) -> Roles:
    """Returns the roles of the plan's nodes: brokers and servers by their software, clients by the flows that
    they send or receive. Other nodes have no role.
    """
    plan, owner = run.plan, node_of_endpoint(run)
    flows = plan.flows
    used = {delivery.receivers for flow in flows for delivery in flow.deliveries}
    sends = {owner.get(flow.sender, flow.sender) for flow in flows}
    gets = {owner.get(e, e) for name in used for e in plan.receivers.get(name, ())}
    found: dict[str, list[str]] = {k: [] for k in ("broker", "server", "sends", "gets", "both")}
    for node in plan.nodes:
        name = node.name
        does = {s.role for s in node.software}
        acts = "both" if name in sends & gets else "sends" if name in sends else "gets"
        kind = "broker" if "broker" in does else "server" if "server" in does else acts
        if kind in ("broker", "server") or name in sends | gets:
            found[kind].append(name)
    return Roles(*(tuple(nodes) for nodes in found.values()))


def node_of_endpoint(run: Run) -> dict[str, str]:
    """Returns the name of the node of each session, by the session's name in records."""
    return run.plan.homes()


def client_endpoints(run: Run) -> list[str]:
    """Returns the endpoints of the sessions that connect to others, which the ramp counts as clients."""
    return [session.endpoint for _, _, session in run.plan.sessions() if not session.listens]


def guarantees(run: Run) -> list[str]:
    """Returns the names of the delivery guarantees in the plan, each once."""
    names = [d.guarantee.name for flow in run.plan.flows for d in flow.deliveries]
    return list(dict.fromkeys(names))


def scenario(run: Run) -> str:
    """Returns the scenario's name in the paper's reference, from the word "scenario" on and with spaces for
    underscores; without a reference, the name of the lab.
    """
    named = run.plan.scenario
    return re.sub("^.*?(?=scenario)", "", str(named)).replace("_", " ") if named else run.lab


def phases(run: Run) -> dict[str, Span]:
    """Returns the phases of the run with a known start and a later end, by name.

    The manifest of a run that is still "running" has planned ends, so its phases end with the last sample at
    the latest.
    """
    spans: dict[str, Span] = {}
    over = _last_sample_ns(run) if run.manifest.state == "running" else None
    for name, bounds in run.manifest.phases.items():
        if bounds and len(bounds) == 2 and all(bounds):
            end = bounds[1] if over is None else min(bounds[1], over)
            if end > bounds[0]:
                spans[name] = Span(name, int(bounds[0]), int(end))
    return spans


def _last_sample_ns(run: Run) -> int | None:
    times = [run.table(name) for name in ("host", "nodes", "links")]
    return max(
        (table.select(pl.col("t_ns").max()).item() for table in times if table is not None), default=None
    )


def origin_ns(run: Run) -> int | None:
    """Returns time zero of all plots in Unix ns: the start of the scenario, else of the first phase; None if
    neither is known.
    """
    t0 = run.manifest.t0_ns
    return int(t0) if t0 else next((s.start_ns for s in phases(run).values()), None)
