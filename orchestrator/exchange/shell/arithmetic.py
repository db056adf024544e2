"""Evaluates a shell's integer arithmetic on Python's syntax tree, without executing it as Python."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from .parsing import ShellError
from .values import UNKNOWN

LARGEST = 1 << 63  # a shell's numbers have 64 bits
_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_CHANGE = re.compile(r"\s*(\w+)\s*(\+\+|--|(?:[-+*/%]?=)(?!=)\s*(.+))\s*", re.DOTALL)


def arithmetic(source: str, variables: dict[str, str], line: int) -> str:
    """Returns the value of a shell's arithmetic expression as text, and sets the variable that it changes,
    as in `i++` or `i += 2`. A variable without a value counts as 0.

    Returns UNKNOWN if a variable is unknown or no integer, if the expression has a form that is not
    supported, or if the value exceeds 64 bits. Raises ShellError with `line` for a division by zero.
    """
    if found := _CHANGE.fullmatch(source):
        name, change = found[1], found[2]
        old = variables.get(name, "0") or "0"
        if change in ("++", "--"):
            variables[name] = arithmetic(f"{old} {change[0]} 1", variables, line)
            return old
        right = found[3] if change[0] == "=" else f"({old}) {change[0]} ({found[3]})"
        variables[name] = arithmetic(right, variables, line)
        return variables[name]
    plain = re.sub(r"\$\{?(\w+)\}?", r"\1", source.replace("&&", " and ").replace("||", " or "))
    plain = re.sub(r"!(?!=)", " not ", plain).replace("/", "//")
    plain = re.sub(r"\b0+(?=\d)", "", plain)
    try:
        value = _value(ast.parse(plain.strip() or "0", mode="eval").body, variables)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return UNKNOWN
    except ZeroDivisionError:
        raise ShellError(line, "divides by zero") from None
    return str(value) if abs(value) < LARGEST else UNKNOWN


def _value(node: Any, variables: dict[str, str]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return _small(int(number))
        case ast.Name(id=name):
            return _small(int(variables.get(name) or "0"))
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, variables)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return int(not _value(inner, variables))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _small(_BINARY[type(op)](_value(left, variables), _value(right, variables)))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
            return int(_COMPARED[type(op)](_value(left, variables), _value(right, variables)))
        case ast.BoolOp(op=op, values=values):
            found = [bool(_value(one, variables)) for one in values]
            return int(all(found) if isinstance(op, ast.And) else any(found))
        case ast.IfExp():
            raise ValueError("no form of a shell")
    raise ValueError("is no arithmetic that is known")


def _small(value: int) -> int:
    if abs(value) >= LARGEST:
        raise ValueError("is larger than a shell's numbers")
    return value
