"""Graphs that more than one benchmark brings up; for Debian's own Python too, in which Mininet runs."""

from __future__ import annotations

from collections.abc import Iterator


def edges(side: int) -> Iterator[tuple[int, int]]:
    """Neighbours in a square of side x side, each pair once; numbered row by row."""
    for number in range(side * side):
        if (number + 1) % side:
            yield number, number + 1
        if number + side < side * side:
            yield number, number + side
