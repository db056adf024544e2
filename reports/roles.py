"""Who is what in a run: broker, subscriber, publishers, phases and conditions, read from its plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reports.rundir import Run

SECOND = 1_000_000_000


@dataclass(frozen=True)
class Roles:
    """Node names by what their software does. A client that does both stands in `both` only."""

    brokers: tuple[str, ...]
    publishers: tuple[str, ...]
    subscribers: tuple[str, ...]
    both: tuple[str, ...]

    @property
    def clients(self) -> tuple[str, ...]:
        """Every MQTT client."""
        return self.publishers + self.subscribers + self.both

    @property
    def senders(self) -> tuple[str, ...]:
        """Every client that publishes."""
        return self.publishers + self.both


@dataclass(frozen=True)
class Span:
    """A phase as it was: Unix times in ns, end after start."""

    name: str
    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / SECOND


def roles(run: Run) -> Roles:
    """The roles of the plan's nodes."""
    found: dict[str, list[str]] = {"broker": [], "publish": [], "subscribe": [], "both": []}
    for node in run.plan.get("nodes", []):
        kind = _kind(node)
        if kind:
            found[kind].append(str(node["name"]))
    return Roles(*(tuple(found[k]) for k in ("broker", "publish", "subscribe", "both")))


def _kind(node: dict[str, Any]) -> str | None:
    software = node.get("software", [])
    if any(s.get("role") == "broker" for s in software):
        return "broker"
    mqtts = [s["mqtt"] for s in software if s.get("mqtt")]
    publishes = any(m.get("publish") for m in mqtts)
    subscribes = any(m.get("subscribe") for m in mqtts)
    if publishes and subscribes:
        return "both"
    return "publish" if publishes else "subscribe" if subscribes else None


def mqtts(run: Run) -> list[dict[str, Any]]:
    """The MQTT part of every client's software."""
    return [s["mqtt"] for n in run.plan.get("nodes", []) for s in n.get("software", []) if s.get("mqtt")]


def node_of_client(run: Run) -> dict[str, str]:
    """The node of every MQTT client id."""
    return {
        str(s["mqtt"]["client_id"]): str(n["name"])
        for n in run.plan.get("nodes", [])
        for s in n.get("software", [])
        if s.get("mqtt")
    }


def qos(run: Run) -> int | None:
    """The QoS at which everything is published; None where there is none, or more than one."""
    levels = {int(m["publish"]["qos"]) for m in mqtts(run) if m.get("publish")}
    return levels.pop() if len(levels) == 1 else None


def payload_bytes(run: Run) -> int | None:
    """Application payload of every message; None where it differs between clients."""
    sizes = {int(m["publish"]["payload_bytes"]) for m in mqtts(run) if m.get("publish")}
    return sizes.pop() if len(sizes) == 1 else None


def scenario(run: Run) -> str:
    """The scenario as the reference names it, shortened; else by shape; else the lab's name."""
    named = run.plan.get("scenario")
    if named:
        return str(named).removeprefix("mqtt_").replace("_", " ")
    return run.lab


def phases(run: Run) -> dict[str, Span]:
    """Phases with a known start and end; a phase that never ended is left out."""
    spans: dict[str, Span] = {}
    for name, bounds in (run.manifest.get("phases") or {}).items():
        if bounds and len(bounds) == 2 and all(bounds) and bounds[1] > bounds[0]:
            spans[name] = Span(name, int(bounds[0]), int(bounds[1]))
    return spans


def origin_ns(run: Run) -> int | None:
    """Time zero of every plot: the scenario's start."""
    t0 = run.manifest.get("t0_ns")
    return int(t0) if t0 else next((s.start_ns for s in phases(run).values()), None)


def shape(run: Run) -> str:
    """How messages flow: many-to-one (one subscriber), many-to-many (clients do both), other."""
    who = roles(run)
    if who.both and not who.publishers and not who.subscribers:
        return "many-to-many"
    if who.publishers and len(who.subscribers) == 1 and not who.both:
        return "many-to-one"
    return "other"
