"""Shows progress on a terminal: phases with their times, a bar, sessions, messages and the time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from orchestrator.cli.progress import (
    PhaseState,
    Progress,
    counts,
    duration,
    event_text,
    fold,
    left_words,
    share,
    signal_text,
    traffic,
    warning_text,
)


class LiveView:
    """Redraws the progress 8 times a second; prints warnings, errors, signals and timeline events above it.
    transient: True removes the progress at the end. `clock` returns seconds.
    """

    def __init__(
        self,
        progress: Progress,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
        transient: bool = False,
    ) -> None:
        self.progress = progress
        self._console = console
        self._clock = clock
        self._began = clock()
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(
            get_renderable=self.render, console=console, refresh_per_second=8, transient=transient
        )

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress = fold(self.progress, {"event": "end"}, self._now())  # ends the spinner
        self._live.stop()

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Updates the progress by an event of the lab; prints warnings, timeline events, signals and
        errors.
        """
        self.progress = fold(self.progress, event, self._now())
        kind = event.get("event")
        if kind == "warning":
            self._console.print(Text.assemble(("! ", "bold yellow"), (warning_text(event), "yellow")))
        elif kind == "event":
            style = "default" if event.get("ok", True) else "red"
            self._console.print(Text.assemble(("• ", "magenta"), (event_text(event), style)))
        elif kind == "signal":
            self._console.print(Text.assemble(("✋ ", "yellow"), (signal_text(event), "yellow")))
        elif kind == "error":
            self._console.print(Text.assemble(("✘ ", "bold red"), (str(event.get("text", "")), "red")))

    def say(self, text: str) -> None:
        """Prints a line above the progress."""
        self._console.print(Text(text))

    def _now(self) -> float:
        return self._clock() - self._began

    def render(self) -> RenderableType:
        """Returns the present progress as a rich table with a last line on traffic and time left."""
        now = self._now()
        rows = Table.grid(padding=(0, 2))
        for column in ("left", "left", "left", "right", "right"):
            rows.add_column(justify=column)
        for phase in self.progress.phases:
            rows.add_row(*self._row(phase, now))
        return Group(rows, self._footer(now))

    def _row(self, phase: PhaseState, now: float) -> list[RenderableType]:
        if phase.ended_s is not None:
            took = Text(duration(phase.ended_s - phase.started_s), style="dim")
            return [
                Text("✔", style="green"),
                Text(phase.name),
                Text(phase.text, style="dim"),
                Text(counts(phase), style="dim"),
                took,
            ]
        done = share(phase, self.progress, now)
        bar: RenderableType = Text(phase.text)
        if done is not None:
            bar = ProgressBar(
                total=1.0, completed=done, width=36, complete_style="cyan", finished_style="cyan"
            )
        return [
            self._spinner,
            Text(phase.name, style="bold"),
            bar,
            Text(counts(phase)),
            Text(duration(now - phase.started_s)),
        ]

    def _footer(self, now: float) -> Text:
        parts = [traffic(self.progress), left_words(self.progress, now)]
        return Text("   " + " · ".join(part for part in parts if part), style="dim")
