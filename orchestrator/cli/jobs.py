"""Prints the progress of a campaign. Runs that are executed one after another have a progress display each.
For parallel runs it prints a line at the start and end of each, and every 10 s the phases of all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

from orchestrator.cli.output import note
from orchestrator.cli.progress import Progress, duration, fold, planned, timed, warning_text, warning_word
from orchestrator.cli.views import View, view

EVERY_S = 10.0


def _again(event: dict[str, Any]) -> str:
    """Returns a line on those suspect cells of the event that run again."""
    cells: Sequence[str] = event["cells"]
    return f"{len(cells)} suspect run{' is' if len(cells) == 1 else 's are'} made again: {', '.join(cells)}"


def _repeats(event: dict[str, Any]) -> str:
    """Returns a line that more repetitions are planned, since intervals are still too wide."""
    return f"some intervals are too wide: up to {event['repetitions']} repetitions of their settings"


# Functions that return the text of an event by which a campaign gets further runs.
MORE: dict[str, Callable[[dict[str, Any]], str]] = {"again": _again, "repeats": _repeats}


class JobsView:
    """Prints lines from the events of parallel runs; `number` in an event identifies the run. `clock` returns
    seconds.
    """

    def __init__(
        self, write: Callable[[str], None] = note, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._began = clock()
        self._told = self._began
        self._runs: dict[int, tuple[str, Progress, float]] = {}  # number -> name, progress, start in seconds
        self._why = ""
        self._left = 0
        self._ended = 0
        self._machines: set[str] = set()
        self.printed: set[str] = set()  # runs whose error, or whose reason to be suspect, was printed

    def __call__(self, event: dict[str, Any]) -> None:
        """Prints lines for an event of the campaign or of one of its runs."""
        number = event.get("number", 0)
        kind = str(event.get("event"))
        if kind == "cell":
            left = event["total"] - event["number"] + 1
            self._left = min(self._left or left, left)  # runs start roughly in the order of their numbers
            self._runs[number] = (event["cell"], Progress(), self._clock())
            on = f" on {event['machine']}" if len(self._machines) > 1 else ""
            self._say(f"[{number}/{event['total']}] {event['cell']}{on}")
        elif kind in MORE:
            self._left = 0  # the count of time left starts again
            self._say(MORE[kind](event))
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
            self._say(f"{name}: {warning_word(event)}: {warning_text(event)}")
        elif event.get("event") == "straggler":
            self._say(f"{name}: {event['text']}")
        elif event.get("event") == "error":
            self._say(f"{name}: error: {event.get('text', '')}")

    def _where(self, number: int) -> str:
        _, progress, _ = self._runs[number]
        phase = progress.current
        if phase is None:
            last = f"{progress.phases[-1].name} done" if progress.phases else "begins"
            return f"[{number}] {last}"
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


class CellView:
    """Shows the progress of cells that run one after another, each below a line with its number and name."""

    def __init__(self) -> None:
        self._display = ExitStack()  # closes the progress display of the running cell
        self._shown: View | None = None
        self._why = ""
        self._left = 0
        self._began = 0.0
        self._took: list[float] = []  # seconds that each complete cell took since this command began
        self.printed: set[str] = set()  # cells whose error, or whose reason to be suspect, was printed

    def __call__(self, event: dict[str, Any]) -> None:
        """Shows an event of the campaign or of the running cell."""
        kind = str(event.get("event"))
        if kind == "cell":
            self._left = event["total"] - event["number"] + 1
            note(f"[{event['number']}/{event['total']}] {event['cell']}")
        elif kind == "waits":
            note(event["text"])
        elif kind in MORE:
            note(MORE[kind](event))
        elif kind == "plan":
            self._open(event)
        elif kind == "cell-end":
            errors = self._close()
            note(self._ended(event, errors))
        elif self._shown is not None:
            self._shown(event)

    def _open(self, event: dict[str, Any]) -> None:
        expected = planned(event["plan"], event.get("time", "real"), "reduce")
        if event["why"] != self._why:
            self._why = event["why"]
            note(f"kernel: {self._why}")
        if self._each_s is None:  # the lengths of the other phases are known after the first run
            least = duration(self._left * sum(expected.length_s.values()))
            note(f"{self._left} runs, at least {least} if all are like this one")
        self._began = time.monotonic()
        self._shown = self._display.enter_context(view(expected, transient=True))

    def _ended(self, event: dict[str, Any], errors: tuple[str, ...]) -> str:
        """Returns a line on the end of a cell: state and duration, the expected time of the others, and the
        reason why it is suspect. `errors` are the errors of the cell that were printed already; the line
        omits them as the reason.
        """
        took = time.monotonic() - self._began
        if event["state"] != "complete" or event.get("suspect"):
            self.printed.add(event["cell"])
        if event["state"] != "complete":
            why = event["error"] or "stopped by the user"
            reason = "" if errors and why == "; ".join(errors) else f": {why}"
            return f"  {event['state']} after {duration(took)}{reason}"
        self._took.append(took)
        left = self._left - 1
        rest = f"; {left} left, about {duration(left * self._each_s)}" if left and self._each_s else ""
        suspect = f"\n  suspect: {event['suspect']}" if event.get("suspect") else ""
        return f"  complete in {duration(took)}{rest}{suspect}"

    @property
    def _each_s(self) -> float | None:
        return sum(self._took) / len(self._took) if self._took else None

    def _close(self) -> tuple[str, ...]:
        """Ends the cell's progress display; returns the errors that it printed."""
        if self._shown is None:
            return ()
        self._display.close()
        errors, self._shown = self._shown.progress.errors, None
        return errors
