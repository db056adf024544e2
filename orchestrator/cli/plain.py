"""Prints progress as plain lines with a time, for pipes and logs: at each new phase, and every 5 s."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.cli.progress import (
    Progress,
    counts,
    fold,
    signal_text,
    traffic,
    warning_text,
)
from orchestrator.cli.remaining import left_words

EVERY_S = 5.0


class PlainView:
    """Passes lines on the progress of a lab to `write`; `clock` gives seconds."""

    def __init__(
        self, progress: Progress, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.progress = progress
        self._write = write
        self._clock = clock
        self._began = clock()
        self._last = float("-inf")

    def __enter__(self) -> PlainView:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing; the live view restores the terminal here."""

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Updates the progress by an event of the lab.

        Writes a line for a warning, timeline event, signal, error or new phase, and after EVERY_S without a
        line.
        """
        before, now = self.progress, self._clock() - self._began
        self.progress = fold(before, event, now)
        if event.get("event") == "warning":
            self.say(f"warning: {warning_text(event)}")
        elif len(self.progress.happened) > len(before.happened):
            self.say(f"event: {self.progress.happened[-1]}")
        elif event.get("event") == "signal":
            self.say(signal_text(event))
        elif event.get("event") == "error":
            self.say(f"error: {event.get('text', '')}")
        elif len(self.progress.phases) > len(before.phases) or now - self._last >= EVERY_S:
            self._status(now)

    def say(self, text: str) -> None:
        """Writes the text with the seconds since the start before its first line."""
        first, *rest = text.splitlines() or [""]
        stamp = f"{self._clock() - self._began:8.1f} s  "
        self._write("\n".join([stamp + first, *(" " * len(stamp) + line for line in rest)]))

    def _status(self, now: float) -> None:
        phase = self.progress.current
        if phase is None:
            return
        self._last = now
        parts = [phase.name, counts(phase), phase.text, traffic(self.progress)]
        parts.append(left_words(self.progress, now))
        self.say("  ".join(part for part in parts if part))
