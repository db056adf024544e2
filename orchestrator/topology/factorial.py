"""Combines the values of axes: all of them, one axis at a time, or a regular fraction of two-level axes.

A fraction 2^(k-p) gives each of k axes a column of the Hadamard matrix of its size. The first axes have
columns of their own, and the column of each further axis is the product of some of these (Box, Hunter and
Hunter, Statistics for Experimenters, 2005, chapter 6). The resolution of a fraction is the length of the
shortest product of columns that is constant. With resolution III, an axis is confounded with an interaction
of two others; with IV it is not; with V, two interactions of two axes are not confounded with each other
either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

ROMAN = {3: "III", 4: "IV", 5: "V", 6: "VI or more"}
MEANS = {
    3: "the effect of an axis is confounded with interactions of two other axes",
    4: "no effect of an axis is confounded with an interaction of two axes",
    5: "neither effects of axes nor interactions of two axes are confounded with each other",
    6: "neither effects of axes nor interactions of two axes are confounded with each other",
}
MOST_AXES = 40  # largest number of axes of a fraction


def one_at_a_time(values: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yields the point with the first value of every axis, then the points in which one axis has another
    value.
    """
    base = tuple(several[0] for several in values)
    yield base
    for place, several in enumerate(values):
        for value in several[1:]:
            yield (*base[:place], value, *base[place + 1 :])


def least_points(axes: int) -> int:
    """Returns the least size of a fraction of resolution IV: twice the number of axes, rounded up to a power
    of two.
    """
    return int(2 ** ((axes - 1).bit_length() + 1))


def fraction(values: Sequence[Sequence[Any]], points: int) -> Iterator[tuple[Any, ...]]:
    """Yields the points of a fraction of axes with two values each; `points` is a power of two."""
    from scipy.linalg import hadamard

    columns = columns_of(len(values), points.bit_length() - 1)
    for row in hadamard(points):
        yield tuple(several[int(row[at] < 0)] for several, at in zip(values, columns, strict=True))


def columns_of(axes: int, base: int) -> list[int]:
    """Returns the column of each axis in a matrix of 2^base rows; the bits of a column name the first axes
    whose product it is.

    Several choices are made, each axis by axis; the one with the highest resolution is returned.
    """
    odd = [mask for mask in range(1, 2**base) if mask.bit_count() % 2]
    choices = [_chosen(axes, base, range(1, 2**base), weight) for weight in range(base, 1, -1)]
    if axes <= len(odd):
        choices.append(_chosen(axes, base, odd, 3))
    return max(choices, key=resolution)


def _chosen(axes: int, base: int, masks: Sequence[int], weight: int) -> list[int]:
    """Returns the first `base` columns and, for each further axis, the column of `masks` that adds the fewest
    constant products of three columns, then of four. Of equally good columns, it takes the one whose number
    of bits is closest to `weight`.
    """
    found = [1 << place for place in range(base)][:axes]
    pairs = Counter(a ^ b for a, b in combinations(found, 2))
    triples = Counter(a ^ b ^ c for a, b, c in combinations(found, 3))
    while len(found) < axes:
        left = [mask for mask in masks if mask not in found]
        best = min(left, key=lambda m: (pairs[m], triples[m], abs(m.bit_count() - weight), m))
        triples.update([pair ^ best for pair in pairs.elements()])
        pairs.update([one ^ best for one in found])
        found.append(best)
    return found


def resolution(columns: Sequence[int]) -> int:
    """Returns the least number of columns whose product is constant: 3, 4 or 5; 6 for more."""
    there = set(columns)
    for length in (3, 4, 5):
        for several in combinations(columns, length - 1):
            product = 0
            for one in several:
                product ^= one
            if product in there and product not in several:
                return length
    return 6


def confounded(axes: Sequence[str], points: int) -> str:
    """Returns as text which effects a fraction confounds: its resolution and how further axes are made."""
    base = points.bit_length() - 1
    columns = columns_of(len(axes), base)
    made = [
        f"{name} = {' x '.join(axes[bit] for bit in range(base) if column >> bit & 1)}"
        for name, column in zip(axes[base:], columns[base:], strict=True)
    ]
    found = resolution(columns)
    said = f"{points} of {2 ** len(axes)} combinations, resolution {ROMAN[found]}: {MEANS[found]}"
    return f"{said} ({', '.join(made)})"
