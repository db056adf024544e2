"""A rich console whose colours are ours alone: words that it shows give the terminal no orders."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from orchestrator.language.terminal import printable


class PlainWords(Console):
    """Spells out control characters in whatever is rendered."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))

    def on_broken_pipe(self) -> None:
        """As for all that writes: the command line knows what it means."""
        raise BrokenPipeError
