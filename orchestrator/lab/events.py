"""Passes the events and warnings of the lab process to its standard output and to every connected client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from orchestrator.lab.jsonlines import Message
from orchestrator.language.terminal import printable

Listener = Callable[[Message], None]


@dataclass(frozen=True, slots=True)
class Warning:
    """A warning about the result of a run. suspect: True if the warning puts the result in doubt."""

    code: str
    text: str
    remedy: str
    suspect: bool = True


class Events:
    """Passes each event to all listeners and keeps the warnings."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self.warnings: list[Warning] = []
        self.phase_name = "create"

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def deafen(self, listener: Listener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def emit(self, event: str, **fields: Any) -> None:
        message = {"event": event, **printable(fields)}
        for listener in list(self._listeners):
            listener(dict(message))

    def phase(self, phase: str, done: float, total: float, text: str, **more: Any) -> None:
        """Emits progress: `done` of `total`. Both are counts, or seconds in a phase that lasts a
        stated time.
        """
        self.phase_name = phase
        self.emit("phase", phase=phase, done=done, total=total, text=text, **more)

    def warn(self, warning: Warning) -> None:
        """Emits a warning, unless an equal one was emitted before."""
        warning = replace(warning, text=printable(warning.text), remedy=printable(warning.remedy))
        if warning not in self.warnings:
            self.warnings.append(warning)
            self.emit("warning", **asdict(warning))

    @property
    def suspect(self) -> bool:
        return any(w.suspect for w in self.warnings)
