"""Defines a rich console that escapes control characters in everything that it prints."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from orchestrator.language.terminal import printable


class PlainWords(Console):
    """A rich console that escapes control characters of texts, but keeps those of its own styles."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))

    def on_broken_pipe(self) -> None:
        """Raises BrokenPipeError, which main.py handles; rich would end the process."""
        raise BrokenPipeError
