"""Chooses the progress display on standard error: live on a terminal, plain lines with a time in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from orchestrator.cli.output import console, note
from orchestrator.cli.progress import Progress, fold, line, status

EVERY_S = 5.0


class View(Protocol):
    """A progress display: shows the events that it is called with, and lines."""

    progress: Progress

    def __call__(self, event: Mapping[str, Any]) -> None: ...
    def say(self, text: str) -> None: ...


@contextmanager
def view(progress: Progress, *, transient: bool = False) -> Iterator[View]:
    """Yields the progress display for standard error: live on a terminal, else plain lines; `transient`: a
    live one is removed at its end.
    """
    if not sys.stderr.isatty():
        yield PlainView(progress, note)
        return
    from orchestrator.cli.live import LiveView

    with LiveView(progress, console(stderr=True), transient=transient) as shown:
        yield shown


class PlainView:
    """Prints the progress of a lab as lines, each with the seconds since the start, by calling `write`;
    `clock` returns seconds.
    """

    def __init__(
        self, progress: Progress, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.progress = progress
        self._write = write
        self._clock = clock
        self._began = clock()
        self._last = float("-inf")

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Updates the progress by an event of the lab.

        Writes a line if the event needs one, and the current phase after EVERY_S without a line.
        """
        now = self._clock() - self._began
        before, self.progress = self.progress, fold(self.progress, event, now)
        text = line(before, self.progress, event, now)
        if not text and now - self._last >= EVERY_S:
            text = status(self.progress, now)
        if text:
            self._last = now
            self.say(text)

    def say(self, text: str) -> None:
        """Writes the text with the seconds since the start before its first line."""
        first, *rest = text.splitlines() or [""]
        stamp = f"{self._clock() - self._began:8.1f} s  "
        self._write("\n".join([stamp + first, *(" " * len(stamp) + line for line in rest)]))
