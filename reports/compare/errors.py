"""The error of comparisons that cannot be made."""

from __future__ import annotations


class CompareError(Exception):
    """What was named cannot be compared; the text has the place, the rule and a remedy."""
