"""Defines the error of comparisons that cannot be made, and the remedy for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CompareError(Exception):
    """Raised if sides or figures cannot be compared; the text has the place, the rule and a remedy."""


def near(name: str, names: Iterable[str]) -> str:
    """Returns a remedy for an unknown name: the most similar known one, or else up to twelve known ones."""
    known = sorted(names)
    if found := difflib.get_close_matches(name[:80], known, 1, 0.6):
        return f"did you mean {found[0]!r}?"
    return f"known are: {', '.join(known[:12])}"
