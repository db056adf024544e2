"""Chooses the progress display, on stderr: live on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol, Self

from orchestrator.cli.output import console, say
from orchestrator.cli.plain import PlainView
from orchestrator.cli.progress import Progress


class View(Protocol):
    """Shows events and lines; a context manager, since a live view restores the terminal."""

    progress: Progress

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def __call__(self, event: Mapping[str, Any]) -> None: ...
    def say(self, text: str) -> None: ...


def view(progress: Progress, *, transient: bool = False) -> View:
    """The display for standard error; a `transient` live view leaves only its notes."""
    if sys.stderr.isatty():
        from orchestrator.cli.live import LiveView

        return LiveView(progress, console(stderr=True), transient=transient)
    return PlainView(progress, lambda line: say(line, err=True))
