"""Evaluates a shell's integer arithmetic with C's operators and precedence."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from .parsing import ShellError
from .values import UNKNOWN

LARGEST = 1 << 63  # numbers of a shell have 64 bits
DEEPEST = 60  # largest depth of parentheses and signs
_CHANGE = re.compile(r"\s*(\w+)\s*(\+\+|--|(?:[-+*/%]?=)(?!=)\s*(.+))\s*", re.DOTALL)
_BEFORE = re.compile(r"^\s*([+-])\1\s*([A-Za-z_]\w*)\s*$")  # ++i as i += 1
_CHANGED = re.compile(r"([A-Za-z_]\w*)\s*(?:\+\+|--|[-+*/%&|^]?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)")
_TOKEN = re.compile(r"\s*(\d+#\w+|\w+|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&^|!~()?:])")


def _divided(a: int, b: int) -> int:
    """Divides towards zero, as C does."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# Binary operators by precedence, the weakest first.
_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    {"<<": lambda a, b: a << _shift(b), ">>": lambda a, b: a >> _shift(b)},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": _divided, "%": lambda a, b: a - b * _divided(a, b)},
)
_UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg, "+": operator.pos, "~": operator.invert, "!": operator.not_,
}  # fmt: skip


def arithmetic(source: str, variables: dict[str, str], line: int) -> str:
    """Returns the value of a shell's arithmetic expression as text, and sets the variable that it changes,
    as in `i++` or `i += 2`. A variable without a value counts as 0; numbers may be octal (010), hexadecimal
    (0x1f) or of a base (2#101).

    Of parts with commas the last has the value. Returns UNKNOWN if a variable is unknown or no integer, if
    the expression has a form that is not supported, such as an assignment inside, or if the value exceeds 64
    bits; variables that it changes become UNKNOWN too. Raises ShellError with `line` for a division by zero.
    """
    *others, source = source.split(",") if not re.search(r"\([^)]*,", source) else [source]
    for other in others:
        arithmetic(other, variables, line)
    source = _BEFORE.sub(r"\2 \1= 1", source)
    if found := _CHANGE.fullmatch(source):
        name, change = found[1], found[2]
        old = variables.get(name, "0") or "0"
        if change in ("++", "--"):
            variables[name] = arithmetic(f"{old} {change[0]} 1", variables, line)
            return old
        right = found[3] if change[0] == "=" else f"({old}) {change[0]} ({found[3]})"
        variables[name] = arithmetic(right, variables, line)
        return variables[name]
    plain = re.sub(r"\$\{?(\w+)\}?", r"\1", source)
    try:
        return str(_Parser(plain.strip() or "0", variables).whole())
    except ValueError:
        for changed in _CHANGED.finditer(plain):
            variables[changed[1] or changed[2]] = UNKNOWN
        return UNKNOWN
    except ZeroDivisionError:
        raise ShellError(line, "divides by zero") from None


class _Parser:
    """A recursive-descent parser that computes while it reads; ValueError for what it cannot compute."""

    def __init__(self, text: str, variables: dict[str, str]) -> None:
        self._variables, self._depth = variables, 0
        self._unused = 0  # number of enclosing parts whose values do not count, as after `0 &&`
        self._tokens: list[str] = []
        at = 0
        while text[at:].strip():
            if (found := _TOKEN.match(text, at)) is None:
                raise ValueError(f"{text[at:]!r} is no arithmetic that is known")
            self._tokens.append(found[1])
            at = found.end()
        self._tokens.reverse()  # reversed, so that the next token is the last of the list

    def whole(self) -> int:
        value = self._choice()
        if self._tokens:
            raise ValueError(f"{self._tokens[-1]!r} stands behind the end")
        return value

    def _next(self, *wanted: str) -> str:
        """Takes the next token if it is one of those wanted; else returns ""."""
        return self._tokens.pop() if self._tokens and self._tokens[-1] in wanted else ""

    def _choice(self) -> int:
        chosen = self._binary(0)
        if not self._next("?"):
            return chosen
        first = self._part(self._choice, used=bool(chosen))
        if not self._next(":"):
            raise ValueError("a choice has no second part")
        second = self._part(self._choice, used=not chosen)
        return first if chosen else second

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._unary()
        value = self._binary(level + 1)
        while sign := self._next(*_LEVELS[level]):
            used = not ((sign == "&&" and not value) or (sign == "||" and value))
            right = self._part(lambda: self._binary(level + 1), used=used)
            value = 0 if self._unused else _small(int(_LEVELS[level][sign](value, right)))
        return value

    def _part(self, read: Callable[[], int], *, used: bool) -> int:
        """Reads a part of the expression; one that is not used may divide by zero."""
        self._unused += not used
        value = read()
        self._unused -= not used
        return value

    def _unary(self) -> int:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ValueError("is nested too deep")
        try:
            if sign := self._next(*_UNARY):
                return _small(int(_UNARY[sign](self._unary())))
            if self._next("("):
                value = self._choice()
                if not self._next(")"):
                    raise ValueError("a parenthesis is not closed")
                return value
            return self._number(self._tokens.pop() if self._tokens else "")
        finally:
            self._depth -= 1

    def _number(self, token: str) -> int:
        if token[:1].isdigit():
            return _small(_integer(token))
        if not token.isidentifier():
            raise ValueError(f"{token!r} is no number")
        value = (self._variables.get(token) or "0").strip()
        return _small(-_integer(value[1:]) if value.startswith("-") else _integer(value))


def _integer(text: str) -> int:
    """Returns the value of a number as C and shells write it: 31, 037, 0x1f or 16#1f."""
    if found := re.fullmatch(r"(\d+)#(\w+)", text):
        return int(found[2], int(found[1]))
    if re.fullmatch(r"0[0-7]*|[1-9]\d*|0[xX][0-9a-fA-F]+", text) is None:
        raise ValueError(f"{text!r} is no number of a shell")
    return int(text, 8 if text.isdigit() and text.startswith("0") else 0)


def _shift(bits: int) -> int:
    if not 0 <= bits < 64:
        raise ValueError("shifts by no number of bits")
    return bits


def _small(value: int) -> int:
    if abs(value) >= LARGEST:
        raise ValueError("is larger than a shell's numbers")
    return value
