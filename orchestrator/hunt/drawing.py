"""Draws a trial from the hunt's seed, its number and the lessons of earlier rounds. Nothing else influences
it, so that any number of workers draws the same trials.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.hunt.model import Data, Trial, begin_ns, kind_of
from orchestrator.language.ranges import Range, at, range_of
from orchestrator.language.units import DURATION, text_ns, whole

MILLISECOND_NS = 1_000_000
TRIES = 50  # number of attempts to draw an event that does not overlap the others
POWER = ("kill", "stop", "restart", "start")
RESTART_NS = 2_000_000_000  # ns; a restart takes at most this long, and no other restart may begin meanwhile
SEEDS = 2**31


@dataclass(frozen=True)
class Space:
    """The space from which trials are drawn. hold_ns: length of the hold; all faults begin and end in it,
    before its last `quiet_ns`.
    """

    faults: Sequence[Data]
    vary: Mapping[str, Any]
    most_events: int
    hold_ns: int
    quiet_ns: int = 0


@dataclass(frozen=True)
class Lesson:
    """The result of earlier rounds: the weight of each kind of fault (by place in the space), and trials that
    showed something new, from which variants are drawn. Empty weights make all kinds equally likely.
    """

    weights: Sequence[float] = ()
    parents: Sequence[Trial] = field(default_factory=list)


def draw(space: Space, seed: int, number: int, lesson: Lesson | None = None) -> Trial:
    """Returns trial `number` of the hunt with `seed`."""
    rng = random.Random(hashlib.sha256(f"{seed}\nhunt\n{number}".encode()).digest())
    trial_seed = rng.randrange(1, SEEDS)
    parameters = {name: _value(values, rng) for name, values in space.vary.items()}
    known = lesson or Lesson()
    if known.parents and rng.random() < 0.5:
        return _variant(space, rng, number, rng.choice(known.parents), known)
    wanted = rng.randint(1, space.most_events)
    return Trial(number, trial_seed, _more(space, rng, (), wanted, known.weights), parameters)


def _value(values: Any, rng: random.Random) -> Any:
    return rng.choice(values) if isinstance(values, list) else at(values, rng.random())


def _variant(space: Space, rng: random.Random, number: int, parent: Trial, lesson: Lesson) -> Trial:
    """Returns a variant of a trial: with events removed, added or replaced, or with another seed or
    parameter.
    """
    events = list(parent.events)
    seed = rng.randrange(1, SEEDS) if rng.random() < 0.3 else parent.seed
    parameters = dict(parent.parameters)
    if parameters and rng.random() < 0.3:
        name = rng.choice(sorted(parameters))
        parameters[name] = _value(space.vary[name], rng)
    change = rng.random()
    if events and change < 0.6:
        events.pop(rng.randrange(len(events)))
    more = rng.randint(0 if events else 1, 1 if change < 0.6 else 2)
    room = max(0, space.most_events - len(events))
    return Trial(number, seed, _more(space, rng, tuple(events), min(more, room), lesson.weights), parameters)


def _more(
    space: Space, rng: random.Random, events: tuple[Data, ...], count: int, weights: Sequence[float]
) -> tuple[Data, ...]:
    """Returns the events and `count` further ones that overlap none of them; fewer if there is no place for
    more.
    """
    found = list(events)
    for _ in range(count):
        for _ in range(TRIES):
            (fault,) = rng.choices(space.faults, weights or None)
            event = _event(fault, rng, space.hold_ns - space.quiet_ns)
            if not any(_clash(event, other) for other in found):
                found.append(event)
                break
    return tuple(sorted(found, key=begin_ns))


def _event(fault: Data, rng: random.Random, hold_ns: int) -> Data:
    """Returns an event of this kind, at a whole millisecond of the first `hold_ns` of the hold."""
    drawn = {key: _drawn(value, rng) for key, value in fault.items()}
    if "for" in drawn:
        length = min(whole(DURATION, drawn["for"]), hold_ns // 2)
        drawn["for"] = text_ns(max(1, length // MILLISECOND_NS) * MILLISECOND_NS)
    if "at" not in drawn:
        latest = max(0, hold_ns - length_ns(drawn))
        moment = rng.randrange(latest // MILLISECOND_NS + 1) * MILLISECOND_NS
        drawn = {"at": f"hold + {text_ns(moment)}", **drawn}
    return drawn


def _drawn(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        return {key: _drawn(part, rng) for key, part in value.items()}
    if isinstance(value, list):
        return [_drawn(part, rng) for part in value]
    found: Range | None = range_of(value)
    return value if found is None else found.at(rng.random())


def length_ns(event: Data) -> int:
    """Returns how long a drawn event lasts, in ns."""
    if "for" in event:
        return whole(DURATION, event["for"])
    times = int(event.get("times", 1))
    return times * sum(whole(DURATION, event[key]) for key in ("down", "up") if key in event)


def _clash(one: Data, other: Data) -> bool:
    """Returns whether two events overlap in time and undo each other: both of one kind, or both start or
    stop programs of one node.
    """
    first, second = sorted((one, other), key=begin_ns)
    margin = RESTART_NS if "restart" in first or any(key in first for key in POWER) else 0
    apart = begin_ns(second) > begin_ns(first) + length_ns(first) + margin
    return not apart and bool(_touched(one) & _touched(other))


def _touched(event: Data) -> set[tuple[str, str]]:
    action, *targets = kind_of(event).split(" ")
    if action in POWER or action == "freeze":
        return {("programs", targets[0])}
    group = "down" if action in ("link-down", "flap", "partition", "split", "disconnect") else action
    return {(group, target) for target in targets} | ({("down", "")} if group == "down" else set())
