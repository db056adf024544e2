"""Plans the timeline: expands targets to names, and flaps, partitions and `for` to single actions."""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Iterator
from typing import Any

from contract.plan import Event, Link

from ..language.units import text_ns
from ..topology.actions import ACTIONS, action_of
from ..topology.document import Event as FileEvent
from ..topology.document import File
from ..topology.expansion import Expansion, implicit_link
from ..topology.partitions import cut_by
from ..topology.phases import Phases
from ..topology.selection import select_all
from .netem import impairment

MILLISECOND_NS = 1_000_000
STALL_NS = 10 * MILLISECOND_NS  # longest time for which a perturbed schedule keeps a thread from running
_UNDO = {"stop": "start", "kill": "start", "freeze": "thaw", "disk-full": "disk-free"}


def cut_nodes(model: File, names: Expansion) -> set[str]:
    """Returns the nodes that the timeline's partitions name, directly or by group. Also returns the nodes
    that a split cuts from a segment to which the file has no link. Ignores segments in a partition.
    """
    found: set[str] = set()
    for event in model.timeline:
        machines = [t for t in event.partition or [] if t not in model.segments]
        found.update(select_all(machines, list(names.nodes), names.groups))
        if event.split is not None:
            cut = set(cut_by(event, model, names).links)
            found.update(
                node
                for node, machine in names.nodes.items()
                for index, _ in enumerate(machine.segment)
                if implicit_link(node, index) in cut
            )
    return found


def plan_events(
    model: File, names: Expansion, phases: Phases, links: tuple[Link, ...], seed: int
) -> tuple[Event, ...]:
    """Returns all events in the order of their time; events of equal time keep the file's order. `seed` is
    that of the times which the file leaves to chance.
    """
    planner = _Planner(model, names, phases, {link.name: link for link in links}, seed)
    found = [item for event in model.timeline for item in planner.expanded(event)]
    found.sort(key=lambda item: item[0])
    return tuple(dataclasses.replace(event, **_place(phases, at)) for at, event in found)


def _place(phases: Phases, at_ns: int) -> dict[str, Any]:
    moment = phases.moment(at_ns)
    return {"phase": moment.phase, "at_ns": moment.at_ns}


@dataclasses.dataclass(frozen=True)
class _Planner:
    model: File
    names: Expansion
    phases: Phases
    links: dict[str, Link]
    seed: int

    def expanded(self, event: FileEvent) -> Iterator[tuple[int, Event]]:
        """Yields (ns after the scenario's start, event) for each single action of an event of the file."""
        action = action_of(event)
        at = self.phases.start_ns(event.at.phase) + event.at.at_ns
        label = event.label or _label(event, str(action))
        if action == "impair":
            yield from self._impair(event, at, label)
        elif action == "flap":
            yield from self._flap(event, at, label)
        elif action == "disconnect":
            yield from self._disconnect(event, at, label)
        elif action in ("link_down", "partition", "split"):
            targets = self._targets(event, str(action))
            yield at, self._event("link-down", targets, label)
            if event.duration is not None:
                yield at + event.duration, self._event("link-up", targets, f"{label}: over")
        elif action == "link_up":
            yield at, self._event("link-up", self._links(event.link_up), label)
        elif action == "limit":
            yield at, self._event("limit", self._nodes(event.limit), label, _most(event))
        elif action == "run":
            yield at, self._event("run", self._nodes(event.on), label, {"argv": list(event.run or [])})
        elif action == "schedule":
            yield from self._schedule(event, at, label)
        elif action == "clock":
            yield from self._clock(event, at, label)
        else:
            yield from self._software(event, str(action), at, label)

    def _event(
        self, action: Any, targets: tuple[str, ...], label: str, args: dict[str, Any] | None = None
    ) -> Event:
        return Event("ramp", 0, action, targets, args or {}, label)

    def _links(self, selectors: list[str] | None) -> tuple[str, ...]:
        return select_all(selectors or [], list(self.links), self.names.links)

    def _nodes(self, selectors: list[str] | None) -> tuple[str, ...]:
        return select_all(selectors or [], list(self.names.nodes), self.names.groups)

    def _targets(self, event: FileEvent, action: str) -> tuple[str, ...]:
        if action == "split":
            return cut_by(event, self.model, self.names).links
        return self._cut(event) if action == "partition" else self._links(event.link_down)

    def _cut(self, event: FileEvent) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for target in event.partition or []:
            if target in self.model.segments:
                found.update(
                    {n: None for n, k in self.links.items() if k.kind == "segments" and target in (k.a, k.b)}
                )
                continue
            for node in self._nodes([target]):
                found.update({n: None for n, k in self.links.items() if k.kind == "access" and k.a == node})
        return tuple(found)

    def _impair(self, event: FileEvent, at: int, label: str) -> Iterator[tuple[int, Event]]:
        forward, reverse = event.forward or event.both, event.reverse or event.both
        wanted = {
            "forward": dataclasses.asdict(impairment(forward)) if forward else None,
            "reverse": dataclasses.asdict(impairment(reverse)) if reverse else None,
        }
        targets = self._links(event.impair)
        yield at, self._event("impair", targets, label, wanted)
        if event.duration is None:
            return
        for name in targets:
            link = self.links[name]
            before = {
                "forward": dataclasses.asdict(link.forward.impairment) if forward else None,
                "reverse": dataclasses.asdict(link.reverse.impairment) if reverse else None,
            }
            yield at + event.duration, self._event("impair", (name,), f"{label}: over", before)

    def _flap(self, event: FileEvent, at: int, label: str) -> Iterator[tuple[int, Event]]:
        targets, down, times = self._links(event.flap), event.down or 0, event.times or 1
        for round_ in range(times):
            begin = at + round_ * (down + (event.up or 0))
            name = f"{label} {round_ + 1}/{times}" if times > 1 else label
            yield begin, self._event("link-down", targets, name)
            yield begin + down, self._event("link-up", targets, f"{name}: over")

    def _disconnect(self, event: FileEvent, at: int, label: str) -> Iterator[tuple[int, Event]]:
        """Yields the cuts of each link, independent of every other link's; the last one ends with the event.

        The times depend only on the seed, the link, and the event's time and targets, not on other events.
        """
        up, down, end = event.up or 0, event.down or 0, at + (event.duration or 0)
        for link in self._links(event.disconnect):
            text = "\0".join((str(self.seed), "disconnect", link, str(at), ",".join(event.disconnect or [])))
            draw = random.Random(hashlib.sha256(text.encode()).digest())
            begin, count = at + _around(draw, up), 1
            while begin < end:
                over = min(end, begin + _around(draw, down))
                name = f"{label}: {link} {count}"
                yield begin, self._event("link-down", (link,), name)
                yield over, self._event("link-up", (link,), f"{name}: over")
                begin, count = over + _around(draw, up), count + 1

    def _software(self, event: FileEvent, action: str, at: int, label: str) -> Iterator[tuple[int, Event]]:
        targets = self._nodes(getattr(event, action))
        action = ACTIONS[action]
        args = {} if action == "disk-full" else {"software": event.software}
        yield at, self._event(action, targets, label, args)
        if event.duration is not None:
            yield at + event.duration, self._event(_UNDO[action], targets, f"{label}: over", dict(args))

    def _schedule(self, event: FileEvent, at: int, label: str) -> Iterator[tuple[int, Event]]:
        """Yields the perturbed schedule of each node, drawn from a seed of its own, and its end."""
        most_ns = STALL_NS if event.stall is None else event.stall
        for node in self._nodes(event.schedule):
            text = "\0".join((str(self.seed), "schedule", node, str(at)))
            # The seed has 48 bits, which every JSON parser represents exactly.
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])
            yield at, self._event("schedule", (node,), label, {"seed": seed, "most_ns": most_ns})
            if event.duration is not None:
                end = self._event("schedule", (node,), f"{label}: over", {"seed": 0, "most_ns": 0})
                yield at + event.duration, end

    def _clock(self, event: FileEvent, at: int, label: str) -> Iterator[tuple[int, Event]]:
        targets = self._nodes(event.clock)
        yield at, self._event("clock", targets, label, {"offset_ns": event.offset})
        if event.duration is not None:
            yield at + event.duration, self._event("clock", targets, f"{label}: over", {"offset_ns": 0})


def _around(draw: random.Random, mean_ns: int) -> int:
    """Returns a random time with an exponential distribution of this mean, in whole milliseconds, at least
    one.
    """
    return max(1, round(draw.expovariate(1.0) * mean_ns / MILLISECOND_NS)) * MILLISECOND_NS


def _most(event: FileEvent) -> dict[str, Any]:
    wanted = event.cpu_limit
    assert wanted is not None, "the check has seen it"
    unit = "mhz" if wanted.mhz is not None else "cores"
    return {f"cpu_limit_{unit}": getattr(wanted, unit)}


def _label(event: FileEvent, action: str) -> str:
    key = "on" if action == "run" else action
    targets: list[str] = getattr(event, key) or []
    if event.split is not None:
        targets = [" from ".join(" + ".join(one) for one in event.split)]
    subject = ", ".join(targets) + (f" {event.software}" if event.software else "")
    if action == "run":
        return f"run {' '.join(event.run or [])[:40]} on {subject}"
    if event.cpu_limit is not None:
        ((unit, amount),) = ((k, v) for k, v in dataclasses.asdict(event.cpu_limit).items() if v is not None)
        return f"limit {subject} to {amount:g} {'MHz' if unit == 'mhz' else unit}"
    lasting = f" for {text_ns(event.duration)}" if event.duration is not None else ""
    return f"{action.replace('_', '-')} {subject}{lasting}"
