"""Prints the progress of parallel runs: start and end of each run, and every 10 s the phase of all."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from orchestrator.cli.output import note
from orchestrator.cli.progress import Progress, duration, fold, timed, warning_text

EVERY_S = 10.0


class JobsView:
    """Prints lines from the events of all runs; `number` in an event tells the run. `clock` gives seconds."""

    def __init__(
        self, write: Callable[[str], None] = note, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._began = clock()
        self._told = self._began
        self._runs: dict[int, tuple[str, Progress, float]] = {}  # number -> name, progress, begin in seconds
        self._why = ""
        self._left = 0
        self._ended = 0
        self._machines: set[str] = set()
        self.printed: set[str] = set()  # runs whose error or reason for doubt was printed

    def __call__(self, event: dict[str, Any]) -> None:
        """Prints lines for an event of the campaign or of one of its runs."""
        number = event.get("number", 0)
        kind = event.get("event")
        if kind == "cell":
            left = event["total"] - event["number"] + 1
            self._left = min(self._left or left, left)  # runs start roughly in order
            self._runs[number] = (event["cell"], Progress(), self._clock())
            on = f" on {event['machine']}" if len(self._machines) > 1 else ""
            self._say(f"[{number}/{event['total']}] {event['cell']}{on}")
        elif kind == "worker":
            self._machines.add(event["text"])
            self._say(event["text"])
        elif kind == "plan":
            name, _, began = self._runs[number]
            self._runs[number] = (name, timed(SimpleNamespace(**event["plan"]), event["time"]), began)
            if event["why"] != self._why:
                self._why = event["why"]
                self._say(f"kernel: {self._why}")
        elif kind == "cell-end":
            self._end(event)
        elif number in self._runs:
            self._run(number, event)
        if self._clock() - self._told >= EVERY_S and self._runs:
            self._told = self._clock()
            self._say("  ".join(self._where(run) for run in sorted(self._runs)))

    def _run(self, number: int, event: dict[str, Any]) -> None:
        name, progress, began = self._runs[number]
        self._runs[number] = (name, fold(progress, event, self._clock() - began), began)
        if event.get("event") == "warning":
            self._say(f"{name}: warning: {warning_text(event)}")
        elif event.get("event") == "straggler":
            self._say(f"{name}: {event['text']}")
        elif event.get("event") == "error":
            self._say(f"{name}: error: {event.get('text', '')}")

    def _where(self, number: int) -> str:
        _, progress, _ = self._runs[number]
        phase = progress.current
        if phase is None:
            return f"[{number}] begins"
        length = progress.length_s.get(phase.name, 0.0)
        part = f" {min(1.0, phase.done / length):.0%}" if length and phase.done else ""
        return f"[{number}] {phase.name}{part}"

    def _end(self, event: dict[str, Any]) -> None:
        name, progress, _ = self._runs.pop(event["number"])
        took = duration(event["wall_s"])
        if event["state"] != "complete" or event.get("suspect"):
            self.printed.add(name)
        if event["state"] != "complete":
            why = event["error"] or "stopped by the user"
            reason = "" if progress.errors and why == "; ".join(progress.errors) else f": {why}"
            self._say(f"{name}: {event['state']} after {took}{reason}")
            return
        self._ended += 1
        begun_since = self._left - 1
        left = begun_since + len(self._runs)
        rest_s = left * (self._clock() - self._began) / self._ended
        self._say(
            f"{name}: complete in {took}" + (f"; {left} left, about {duration(rest_s)}" if left else "")
        )
        if event.get("suspect"):
            self._say(f"{name}: suspect: {event['suspect']}")

    def _say(self, text: str) -> None:
        self._write(f"{duration(self._clock() - self._began):>12}  {text}")
