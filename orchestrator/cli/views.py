"""Which progress display a command gets: live on a terminal, plain lines in a pipe; on stderr either way."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol, Self

from orchestrator.cli.output import console, say
from orchestrator.cli.plain import PlainView
from orchestrator.cli.progress import Progress


class View(Protocol):
    """Takes events and lines; a context, since a live view has to give the terminal back."""

    progress: Progress

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def __call__(self, event: Mapping[str, Any]) -> None: ...
    def say(self, text: str) -> None: ...


def view(progress: Progress, *, transient: bool = False) -> View:
    """The display for where standard error goes; transient: a live one leaves no trace but its notes."""
    if sys.stderr.isatty():
        from orchestrator.cli.live import LiveView

        return LiveView(progress, console(stderr=True), transient=transient)
    return PlainView(progress, lambda line: say(line, err=True))
