"""Makes a failing trial smaller while it still fails: fewer events, rounder times, less of the file."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.hunt.drawing import length_ns
from orchestrator.hunt.model import Data, Trial, begin_ns
from orchestrator.language.units import text_ns

Fails = Callable[[Trial], bool]
# times are rounded to multiples of these (ns), the largest first
STEPS_NS = (10**10, 5 * 10**9, 10**9, 10**8, 10**7)
MOST = 120  # largest number of runs for one violation


@dataclass
class Shrinker:
    """Shrinks one trial. `fails` runs a candidate and returns whether it breaks the same expectation.
    quiet_ns: time without faults that the end of the hold keeps.
    """

    fails: Fails
    left: int = MOST
    quiet_ns: int = 0

    def shrink(self, trial: Trial, first_seed: int, smallest: Mapping[str, Any]) -> Trial:
        """Returns a smaller trial that fails, or the trial itself. `smallest` has for each varied parameter
        the value that is tried first; `first_seed` is the file's seed.
        """
        trial = self._events(trial)
        trial = self._first(trial, [replace(trial, seed=first_seed)])
        for name, value in smallest.items():
            trial = self._first(trial, [replace(trial, parameters={**trial.parameters, name: value})])
        trial = self._file(trial)
        trial = self._times(trial)
        return self._events(trial) if len(trial.events) > 1 else trial

    def _try(self, trial: Trial) -> bool:
        if self.left <= 0:
            return False
        self.left -= 1
        return self.fails(trial)

    def _first(self, trial: Trial, candidates: Sequence[Trial]) -> Trial:
        return next((one for one in candidates if one != trial and self._try(one)), trial)

    def _events(self, trial: Trial) -> Trial:
        """Removes events by delta debugging (ddmin; Zeller and Hildebrandt, 2002)."""
        events, parts = list(trial.events), 2
        while len(events) >= 2:
            size = max(1, len(events) // parts)
            for begin in range(0, len(events), size):
                rest = events[:begin] + events[begin + size :]
                if rest and self._try(replace(trial, events=tuple(rest))):
                    events, parts = rest, max(2, parts - 1)
                    break
            else:
                if size == 1:
                    break
                parts = min(len(events), parts * 2)
        return replace(trial, events=tuple(events))

    def _times(self, trial: Trial) -> Trial:
        """Rounds time and length of each event as far as the trial still fails."""
        for place in range(len(trial.events)):
            for change in (_moments, _lengths, _milder):
                candidates = [
                    replace(trial, events=(*trial.events[:place], event, *trial.events[place + 1 :]))
                    for event in change(trial.events[place])
                ]
                trial = self._first(trial, candidates)
        return trial

    def _file(self, trial: Trial) -> Trial:
        """Removes nodes, links, captures and events of the file that the failure does not need, and shortens
        the run after the last event.
        """
        for smaller in _without(trial.data):
            candidate = trial.of(smaller(trial.data))
            if candidate.data != trial.data and self._try(candidate):
                trial = candidate
        end_ns = max((begin_ns(event) + length_ns(event) for event in trial.events), default=0)
        end_ns += self.quiet_ns
        for more_s in (1, 5, 10):
            shorter = copy.deepcopy(trial.data)
            hold = text_ns((end_ns // 10**9 + more_s) * 10**9)
            shorter["run"] = {**shorter.get("run", {}), "hold": hold}
            if self._try(trial.of(shorter)):
                return trial.of(shorter)
        return trial


def _moments(event: Data) -> Iterator[Data]:
    now = begin_ns(event)
    for rounded in _rounded(now):
        yield {**event, "at": f"hold + {text_ns(rounded)}" if rounded else "hold"}


def _lengths(event: Data) -> Iterator[Data]:
    if "for" in event:
        for rounded in _rounded(length_ns(event)):
            if rounded:
                yield {**event, "for": text_ns(rounded)}


def _milder(event: Data) -> Iterator[Data]:
    """Yields the impairment with one figure removed, for each figure in turn."""
    for way in ("both", "forward", "reverse"):
        figures: Any = event.get(way)
        if not isinstance(figures, dict) or len(figures) < 2:
            continue
        for key in figures:
            yield {**event, way: {name: value for name, value in figures.items() if name != key}}


def _rounded(value_ns: int) -> Iterator[int]:
    """Yields coarser values near a time, the coarsest first; never yields the time itself."""
    for step in STEPS_NS:
        near = (value_ns + step // 2) // step * step
        if near != value_ns:
            yield near


def _without(data: Data) -> Iterator[Callable[[Data], Data]]:
    """Yields functions that each remove one part: the file's timeline, captures, nodes, groups or links."""
    for section in ("timeline", "captures", "description"):
        if data.get(section):
            yield lambda now, section=section: {key: v for key, v in now.items() if key != section}  # type: ignore[misc]
    for section in ("groups", "nodes", "links"):
        for name in list(data.get(section) or ()):
            yield lambda now, section=section, name=name: _minus(now, section, name)  # type: ignore[misc]


def _minus(data: Data, section: str, name: str) -> Data:
    parts: Data = data.get(section) or {}
    left = {key: value for key, value in parts.items() if key != name}
    return {**data, section: left}
