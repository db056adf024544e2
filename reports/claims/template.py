"""Fills measured values into sentences such as "sent / received = {value:.3f}"; each field holds an
expression.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reports.claims.expression import Expression, ExpressionError, Lookup, parse
from reports.claims.verdict import Value

FIELD = re.compile(r"\{([^{}:]+)(?::([^{}]*))?\}")
NUMBER = re.compile(r"[+]?(?:\.\d)?[fg%]")
OWN = "value"  # the figure that the rule judges


@dataclass(frozen=True)
class Field:
    """An expression in a sentence. `form` states its text: empty for the value with its interval, "unit" for
    these with the unit, else a Python number format for the value.
    """

    expression: Expression
    form: str

    def text(self, value: Value) -> str:
        if self.form in ("", "unit"):
            return str(value) if self.form else value.bare
        return format(value.value, self.form)


@dataclass(frozen=True)
class Template:
    """A sentence with fields; `parse_template` makes it."""

    parts: tuple[str | Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the quantities in the fields, each once, without `value`, the judged expression."""
        used = [name for part in self.parts if isinstance(part, Field) for name in part.expression.names]
        return tuple(dict.fromkeys(name for name in used if name != OWN))

    def text(self, lookups: Sequence[Lookup]) -> str | None:
        """Returns the sentence, in which each field has its values for all `lookups` (levels) with slashes
        between; None if a value is unknown.
        """
        found = []
        for part in self.parts:
            if isinstance(part, str):
                found.append(part)
                continue
            values = [part.expression.value(lookup) for lookup in lookups]
            known = [part.text(v) for v in values if v is not None]
            if len(known) < len(values):
                return None
            found.append(" / ".join(known))
        return "".join(found)


def parse_template(text: str) -> Template:
    """Returns the sentence that a text describes; ExpressionError if a field is no expression or has no valid
    format, or if a brace has no partner.
    """
    parts: list[str | Field] = []
    end = 0
    for found in FIELD.finditer(text):
        parts.append(text[end : found.start()])
        form = found.group(2) or ""
        if form not in ("", "unit") and not NUMBER.fullmatch(form):
            raise ExpressionError(f"{form!r} is no form of a number; write unit, or like .1f, .3g, +.1%")
        parts.append(Field(parse(found.group(1)), form))
        end = found.end()
    parts.append(text[end:])
    if any("{" in part or "}" in part for part in parts if isinstance(part, str)):
        raise ExpressionError("a brace is not paired")
    return Template(tuple(part for part in parts if part))
