"""jinja2 templates of commands and files: which names they may use, and their text for one node."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import StrictUndefined, TemplateError, meta
from jinja2.sandbox import SandboxedEnvironment

NAMES = frozenset({"lab", "node", "group", "index", "count", "address", "addresses", "parameters"})


class TemplateFaultError(ValueError):
    """A template that cannot be read or rendered; the text says why."""


@cache
def _environment() -> SandboxedEnvironment:
    return SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)


def fault(template: str) -> str | None:
    """Why a template is not one, or None; does not render it."""
    if "{" not in template:
        return None
    try:
        used = meta.find_undeclared_variables(_environment().parse(template))
    except (TemplateError, RecursionError) as error:
        return str(error)
    unknown = sorted(used - NAMES - set(_environment().globals))
    return f"no name {', '.join(unknown)} in templates" if unknown else None


def render(template: str, values: Mapping[str, Any]) -> str:
    """The text for one node; raises TemplateFaultError."""
    if "{" not in template:
        return template
    try:
        return _environment().from_string(template).render(values)
    except (TemplateError, ArithmeticError, TypeError, ValueError, AttributeError, LookupError) as error:
        raise TemplateFaultError(str(error)) from error
