"""Defines the graphs that several benchmarks bring up; Debian's own Python, which runs Mininet, imports them,
too.
"""

from __future__ import annotations

from collections.abc import Iterator


def edges(side: int) -> Iterator[tuple[int, int]]:
    """Yields each pair of neighbours in a square of side x side nodes once, as two numbers; nodes are
    numbered row by row.
    """
    for number in range(side * side):
        if (number + 1) % side:
            yield number, number + 1
        if number + side < side * side:
            yield number, number + side
