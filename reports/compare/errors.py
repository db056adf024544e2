"""The error of comparisons that cannot be made."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CompareError(Exception):
    """What was named cannot be compared; the text has the place, the rule and a remedy."""


def near(name: str, names: Iterable[str]) -> str:
    """A remedy for an unknown name: the nearest known one, or some of them."""
    known = sorted(names)
    if found := difflib.get_close_matches(name[:80], known, 1, 0.6):
        return f"did you mean {found[0]!r}?"
    return f"known are: {', '.join(known[:12])}"
