"""The values of a hunt: kinds of faults, trials, and what came of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Data = dict[str, Any]
State = Literal["holds", "fails", "cannot tell", "broken"]


class HuntError(Exception):
    """Raised when a hunt cannot begin or go on; the text names the place, the rule and the remedy."""


@dataclass(frozen=True)
class Trial:
    """One run of a hunt: `events` stand in the timeline beside those of the file, `parameters` replace those
    of the file. number: from 1; 0 is the baseline, without faults. `data` is the file's content.
    """

    number: int
    seed: int
    events: tuple[Data, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    data: Data = field(default_factory=dict, repr=False)

    def of(self, data: Data) -> Trial:
        """Returns the trial on another content of the file."""
        return replace(self, data=data)


@dataclass(frozen=True)
class Outcome:
    """What came of a trial. broken: the expectations that fail, in words. why: the reasons. features: what
    the run showed, for guidance. error: why a run did not end in order (state `broken`).
    """

    number: int
    state: State
    broken: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    error: str | None = None
    wall_s: float = 0.0
    run_dir: str = ""  # of a run that is kept; else empty


def kind_of(event: Data) -> str:
    """Returns what a drawn event does and to what, such as `kill broker mosquitto` or `impair wan`."""
    action = next(key for key in event if key not in ("at", "for", "software", "both", "forward", "reverse",
                                                      "label", "down", "up", "times"))  # fmt: skip
    target = event[action]
    named = " ".join(map(str, target)) if isinstance(target, list) else str(target)
    return " ".join(filter(None, (action, named, str(event.get("software", "")))))
