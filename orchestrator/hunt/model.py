"""Defines the values of a hunt: kinds of faults, trials, and their outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from orchestrator.language.units import DURATION, whole

Data = dict[str, Any]
# Keys of an event in addition to its action.
EXTRAS = {
    "at", "for", "software", "both", "forward", "reverse", "label", "down", "up", "times", "stall", "offset",
}  # fmt: skip
State = Literal["holds", "fails", "cannot tell", "aborted"]


class HuntError(Exception):
    """Raised when a hunt cannot begin or continue; the text names the place, the rule and the remedy."""


@dataclass(frozen=True)
class Trial:
    """One run of a hunt: `events` are added to the file's timeline, `parameters` replace those of the file.
    number: 1 and higher; 0 is the baseline, without faults. `data` is the file's content.
    """

    number: int
    seed: int
    events: tuple[Data, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    data: Data = field(default_factory=dict, repr=False)

    def of(self, data: Data) -> Trial:
        """Returns the same trial on another content of the file."""
        return replace(self, data=data)

    def places(self, hold_ns: int) -> Iterator[tuple[str, int]]:
        """Yields for each event its kind, and the third of the hold in which it begins: 0, 1 or 2."""
        for event in self.events:
            yield kind_of(event), min(2, 3 * begin_ns(event) // max(1, hold_ns))


@dataclass(frozen=True)
class Outcome:
    """The outcome of a trial. failing: the expectations that fail, as text. why: the reasons. features:
    observed behaviour, for guidance. error: why a run did not end in order (state `aborted`). hashed: a hash
    over all files of the run; empty if the run did not end in order.
    """

    number: int
    state: State
    failing: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    error: str | None = None
    hashed: str = ""
    wall_s: float = 0.0


def kind_of(event: Data) -> str:
    """Returns the action and the target of a drawn event, such as `kill NODE SOFTWARE` or `impair LINK`."""
    action = next(key for key in event if key not in EXTRAS)
    target = event[action]
    named = " ".join(map(str, target)) if isinstance(target, list) else str(target)
    return " ".join(filter(None, (action, named, str(event.get("software", "")))))


def begin_ns(event: Data) -> int:
    """Returns when a drawn event begins, in ns after the start of its phase."""
    moment = str(event["at"]).partition("+")[2].strip()
    return whole(DURATION, moment) if moment else 0
