"""Puts the file and line of a program before the lab's errors and warnings about it: the lab's process has
the plan, which has no lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from orchestrator.language.problem import TopologyError
from orchestrator.language.source import Document, read_document
from orchestrator.run.prepare import Prepared

Event = dict[str, Any]
_PROGRAM = re.compile(r"(^|; )nodes\.([^\s.:]+)\.([^\s.:]+): ")


@dataclass(frozen=True)
class Places:
    """The places of programs in the topology file of a run."""

    prepared: Prepared

    def text(self, said: str) -> str:
        """Returns an error or warning with `FILE:LINE: ` before each program that it names at the beginning
        or after `; `; the line is that of the program's `ready`, or of the program if it has none. A program
        that the file does not name in its own words gets no place.
        """
        return _PROGRAM.sub(self._placed, said)

    def event(self, event: Event) -> Event:
        """Returns the event; one of kind error or warning has its text with places."""
        if event.get("event") not in ("error", "warning") or not isinstance(event.get("text"), str):
            return event
        return {**event, "text": self.text(event["text"])}

    def observing(self, observe: Callable[[Event], None]) -> Callable[[Event], None]:
        """Returns a function that passes events with places to `observe`."""
        return lambda event: observe(self.event(event))

    def _placed(self, found: re.Match[str]) -> str:
        before, node, software = found.groups()
        line = self._line(node, software)
        file = self.prepared.request.file
        return found[0] if line is None else f"{before}{file}:{line}: nodes.{node}.{software}: "

    def _line(self, node: str, software: str) -> int | None:
        groups = {one.name: one.group for one in self.prepared.plan.nodes}
        if self._document is None or node not in groups:
            return None
        lines = self._document.lines
        for section, name in (("nodes", node), ("groups", groups[node])):
            program = (section, name, "software", software)
            if program in lines:
                return lines.get((*program, "ready"), lines[program])
        return None

    @cached_property
    def _document(self) -> Document | None:
        file = self.prepared.request.file
        try:
            return read_document(str(file), file.read_bytes())
        except (OSError, TopologyError):  # changed since the run began: no line of it is right
            return None
