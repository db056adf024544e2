"""Evaluates the tests of a shell, `[ ]`, `[[ ]]` and `test`, to true, false, or unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .values import known, matches

NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b, "-ne": lambda a, b: a != b, "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b, "-gt": lambda a, b: a > b, "-ge": lambda a, b: a >= b,
}  # fmt: skip


def test(words: Sequence[str], patterns: bool = False) -> bool | None:
    """Returns whether a test of texts or numbers holds; None if a value in it is unknown, and for any other
    test, such as one of a file. Without words, returns False.

    `patterns` selects the rules of [[ ]], where the right side of `=`, `==` and `!=` is a shell pattern.
    """
    words = list(words)
    for operator, decide in (("-o", _either), ("-a", _both), ("||", _either), ("&&", _both)):
        if operator in words[1:-1]:
            at = words.index(operator, 1)
            return decide(test(words[:at], patterns), test(words[at + 1 :], patterns))
    match words:
        case []:
            return False
        case ["!", *rest]:
            return opposite(test(rest, patterns))
        case ["(", *inner, ")"]:
            return test(inner, patterns)
        case [one]:
            return bool(one) if known(one) or one.strip("\ufdd0") else None
        case ["-n", one]:
            return test([one])
        case ["-z", one]:
            return opposite(test([one]))
        case [left, operator, right]:
            return _compared(left, operator, right, patterns)
    return None  # a test of files or of another state of the machine


def _compared(left: str, operator: str, right: str, patterns: bool) -> bool | None:
    if operator in NUMBERS:
        try:
            return NUMBERS[operator](int(left), int(right))
        except ValueError:
            return None
    if operator not in ("=", "==", "!="):
        return None
    whole = left == right if known(left) and known(right) else None
    same = matches(left, right) if patterns else whole
    return same if operator != "!=" else opposite(same)


def opposite(holds: bool | None) -> bool | None:
    return None if holds is None else not holds


def _either(a: bool | None, b: bool | None) -> bool | None:
    return True if a or b else None if a is None or b is None else False


def _both(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True
