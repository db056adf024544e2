"""Parses and computes arithmetic on named quantities in claims, such as `broker_sent / broker_received`, with
intervals.

Grammar: sum = product {("+" | "-") product}; product = part {("*" | "/") part}; part = number | name | "-"
part | "(" sum ")".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from reports.claims.verdict import Value

TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|([a-z_][a-z0-9_]*)|([-+*/()]))")
LONGEST = 200  # characters; longer expressions are too hard to read
Lookup = Callable[[str], Value | None]


class ExpressionError(ValueError):
    """Raised if a text is no expression or no sentence with fields, or if the settings of a rule are wrong;
    the message has the reason and, for an unexpected character, its position.
    """


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Binary:
    operator: str
    left: Node
    right: Node


Node = Number | Name | Binary


@dataclass(frozen=True)
class Expression:
    """A parsed expression; `parse` makes it."""

    text: str
    root: Node

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the quantities in the expression, in the order of their first use."""
        return tuple(dict.fromkeys(_names(self.root)))

    def value(self, lookup: Lookup) -> Value | None:
        """Returns the value of the expression; None if a quantity is unknown or a divisor is not above zero.

        Its interval goes from the least to the largest that the intervals of its quantities allow, because
        values of one run vary together; there is none if a quantity has none, or if the interval of a divisor
        reaches zero. Products and quotients have no unit.
        """
        return _value(self.root, lookup)


def parse(text: str) -> Expression:
    """Parses the text of an expression; ExpressionError if it is not one or is longer than LONGEST."""
    if len(text) > LONGEST:
        raise ExpressionError(f"is longer than {LONGEST} characters; name a part of it")
    parser = _Parser(text)
    root = parser.sum()
    if parser.token:
        raise ExpressionError(
            f"{parser.token!r} at character {parser.place}: expected an operator or the end"
        )
    return Expression(text, root)


class _Parser:
    """A recursive-descent parser with one method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        self.text, self.end = text, 0
        self.token = ""
        self.place = 0
        self._next()

    def _next(self) -> str:
        taken = self.token
        self.place = self.end + 1
        if not self.text[self.end :].strip():
            self.token = ""
            return taken
        found = TOKEN.match(self.text, self.end)
        if found is None:
            raise ExpressionError(
                f"{self.text[self.end :].strip()[0]!r} at character {self.place}: only numbers, names of "
                "figures, + - * / and parentheses are known"
            )
        self.token, self.end = found.group(0).strip(), found.end()
        return taken

    def sum(self) -> Node:
        node = self.product()
        while self.token in ("+", "-"):
            node = Binary(self._next(), node, self.product())
        return node

    def product(self) -> Node:
        node = self.part()
        while self.token in ("*", "/"):
            node = Binary(self._next(), node, self.part())
        return node

    def part(self) -> Node:
        token = self._next()
        if token == "(":
            node = self.sum()
            if self._next() != ")":
                raise ExpressionError("a parenthesis is not closed")
            return node
        if token == "-":
            return Binary("-", Number(0.0), self.part())
        if token and token[0].isdigit():
            return Number(float(token))
        if token and token not in "+*/)":
            return Name(token)
        raise ExpressionError(f"{token or 'its end'!r} stands where a number or a figure is expected")


def _names(node: Node) -> list[str]:
    if isinstance(node, Binary):
        return [*_names(node.left), *_names(node.right)]
    return [node.name] if isinstance(node, Name) else []


def _value(node: Node, lookup: Lookup) -> Value | None:
    if isinstance(node, Number):
        return Value(node.value, node.value, node.value, "")
    if isinstance(node, Name):
        return lookup(node.name)
    left, right = _value(node.left, lookup), _value(node.right, lookup)
    if left is None or right is None or (node.operator == "/" and right.value <= 0):
        return None
    return _joined(node, left, right)


def _joined(node: Binary, left: Value, right: Value) -> Value:
    value = _apply(node.operator, left.value, right.value)
    unit = left.unit or right.unit if node.operator in "+-" else ""
    if left.low is None or left.high is None or right.low is None or right.high is None:
        return Value(value, None, None, unit)
    if node.operator == "/" and right.low <= 0:
        return Value(value, None, None, unit)
    ends = [_apply(node.operator, a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    return Value(value, min(ends), max(ends), unit)


def _apply(operator: str, a: float, b: float) -> float:
    return {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else 0.0}[operator]
