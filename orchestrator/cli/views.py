"""Chooses the progress display on standard error: live on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol, Self

from orchestrator.cli.output import console, say
from orchestrator.cli.plain import PlainView
from orchestrator.cli.progress import Progress


class View(Protocol):
    """A progress display: shows the events that it is called with, and lines, while its context lasts."""

    progress: Progress

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def __call__(self, event: Mapping[str, Any]) -> None: ...
    def say(self, text: str) -> None: ...


def view(progress: Progress, *, transient: bool = False) -> View:
    """Returns the progress display for standard error; `transient`: a live one is removed at its end."""
    if sys.stderr.isatty():
        from orchestrator.cli.live import LiveView

        return LiveView(progress, console(stderr=True), transient=transient)
    return PlainView(progress, lambda line: say(line, err=True))
