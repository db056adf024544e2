"""Checks and renders templates with a restricted jinja2; the process of template_process.py runs
this code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, meta
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment

from .template_rules import MEMORY, NAMES, TemplateFaultError

_TOO_LARGE = f"it needs more than {MEMORY >> 20} MiB of memory"
LARGEST_TEXT = 1 << 20  # largest number of bytes that a template may produce; the largest of vNET has 400


class _Environment(SandboxedEnvironment):
    """Jinja2's sandbox with `*` (numbers only) and `**` (small numbers only) restricted, since these turn
    small values into huge ones.
    """

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "*" and not (_number(left) and _number(right)):
            raise TemplateFaultError("* multiplies numbers only")
        if operator == "**" and not (
            _number(left) and _number(right) and abs(left) < 1e6 and abs(right) < 64
        ):
            raise TemplateFaultError("** takes a base below 1,000,000 and an exponent below 64")
        return super().call_binop(context, operator, left, right)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < 1e300


@cache
def _environment() -> SandboxedEnvironment:
    made = _Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    del made.filters["random"], made.globals["lipsum"]  # so that the same file gives the same plan
    return made


@lru_cache(maxsize=256)
def _compiled(template: str) -> Template:
    return _environment().from_string(template)


def fault(template: str) -> str | None:
    """Returns the reason why a template is invalid: its syntax, a name outside template_rules.NAMES, or too
    much memory; None if it is valid. Does not render it.
    """
    try:
        used = meta.find_undeclared_variables(_environment().parse(template))
    except MemoryError:
        return _TOO_LARGE
    except Exception as error:  # any exception that Jinja2 raises for the template
        return _reason(error)
    unknown = sorted(used - NAMES - set(_environment().globals))
    return f"no name {', '.join(unknown)} in templates" if unknown else None


def render(template: str, values: Mapping[str, Any]) -> str:
    """Returns the template's text for these values; raises TemplateFaultError if rendering fails, exceeds the
    memory, makes more than 1,048,576 characters, or makes a character that no argument or file of a program
    can hold.
    """
    try:
        return _bounded(_compiled(template).generate(values))
    except TemplateFaultError:
        raise
    except MemoryError:
        raise TemplateFaultError(_TOO_LARGE) from None
    except Exception as error:  # an exception of the template's own code, or of Python's compiler for it
        raise TemplateFaultError(_reason(error)) from error


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _bounded(pieces: Iterable[str]) -> str:
    """Joins the pieces; raises TemplateFaultError as soon as they exceed 1,048,576 characters
    (LARGEST_TEXT).
    """
    kept: list[str] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > LARGEST_TEXT:
            raise TemplateFaultError(f"it makes more than {LARGEST_TEXT} characters")
        kept.append(piece)
    text = "".join(kept)
    if "\0" in text:
        raise TemplateFaultError("it makes a zero byte, which no argument of a program can hold")
    text.encode()  # a half of a UTF-16 pair cannot be encoded
    return text
