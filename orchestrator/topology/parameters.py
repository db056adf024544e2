"""Resolves parameters from defaults and overrides, and substitutes `${name}` in the data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from ..language import units
from ..language.problem import Problem, closest, shown
from ..language.source import Document, Path
from .document import Parameter
from .validation import problems_of

_USE = re.compile(r"\$(\$|\{([^{}]*)\})")
_ALONE = re.compile(r"\$\{([^{}]*)\}")
_TEMPLATE_USE = re.compile(r"parameters(?:\.|\[['\"])([a-z0-9_-]+)")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
COMMAND_LINE = "-p"
_SPELLED = {"true": True, "yes": True, "false": False, "no": False}


def declared(document: Document, problems: list[Problem]) -> dict[str, Parameter]:
    """Returns the declared parameters by name; reports invalid ones and leaves them out."""
    section = document.data.get("parameters")
    if section is None:
        return {}
    if not isinstance(section, dict):
        rule = "must be a mapping of parameter names"
        problems.append(
            document.problem(
                ("parameters",), shown(section), rule, "write `parameters: {clients: {type: int}}`"
            )
        )
        return {}
    found: dict[str, Parameter] = {}
    for name, data in section.items():
        path: Path = ("parameters", name)
        if not _NAME.fullmatch(name):
            rule = "a parameter's name is lower case letters, digits and _"
            problems.append(document.problem(path, shown(name), rule, "rename it"))
            continue
        try:
            found[name] = Parameter.model_validate(data)
        except ValidationError as error:
            problems.extend(problems_of(error, Parameter, document, path))
    return found


def resolve(
    document: Document, known: Mapping[str, Parameter], overrides: Mapping[str, Any], problems: list[Problem]
) -> dict[str, Any]:
    """Returns each parameter's value; quantities remain text with their unit. Reports unknown names in
    `overrides`, and reports and leaves out missing and invalid values.
    """
    for name in overrides.keys() - known.keys():
        remedy = closest(name, known, what="parameters")
        problems.append(
            Problem(document.file, 0, f"{COMMAND_LINE} {name}", "", "no parameter has this name", remedy)
        )
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        path: Path = ("parameters", name, "default")
        given = overrides.get(name, parameter.default)
        if given is None:
            rule, remedy = "has no default and no value", f"write {COMMAND_LINE} {name}=VALUE, or a default"
            problems.append(document.problem(path[:2], "", rule, remedy))
            continue
        try:
            values[name] = _checked(parameter, given)
        except units.UnitError as error:
            if name in overrides:
                place = f"{COMMAND_LINE} {name}"
                problems.append(Problem(document.file, 0, place, shown(given), error.rule, error.remedy))
            else:
                problems.append(document.problem(path, shown(given), error.rule, error.remedy))
    return values


def _checked(parameter: Parameter, given: Any) -> Any:
    value = _typed(parameter, given)
    size = _magnitude(parameter.type, value)
    for bound, below in ((parameter.min, True), (parameter.max, False)):
        if bound is None:
            continue
        limit = _magnitude(parameter.type, _typed(parameter, bound))
        if limit is None or size is None:
            raise units.UnitError(f"min and max mean nothing for {parameter.type}", "remove them")
        if (size < limit) if below else (size > limit):
            word = "least" if below else "most"
            raise units.UnitError(f"must be at {word} {bound}", "give a value within its bounds")
    if parameter.choices is not None and value not in [_typed(parameter, c) for c in parameter.choices]:
        listed = ", ".join(str(choice) for choice in parameter.choices)
        raise units.UnitError("is not one of the choices", f"choose one of {listed}")
    return value


def _typed(parameter: Parameter, given: Any) -> Any:
    """Converts a value, which is text if it comes from the command line, to the declared type."""
    kind, text = parameter.type, str(given).strip()
    if kind == "text":
        return str(given)
    if kind == "bool":
        if isinstance(given, bool) or text.lower() in _SPELLED:
            return _SPELLED[text.lower()]
        raise units.UnitError("is not true or false", "write true or false")
    if kind in units.QUANTITIES:
        return units.spaced(_quantity(parameter), given)
    return _number(kind, given, text)


def _quantity(parameter: Parameter) -> units.Quantity:
    """Returns the parameter's kind of quantity; its error texts suggest the unit of the
    parameter's default.
    """
    kind = units.QUANTITIES[parameter.type]
    try:
        return replace(kind, example=units.spaced(kind, parameter.default))
    except units.UnitError:
        return kind


def _number(kind: str, given: Any, text: str) -> int | float:
    whole = re.fullmatch(r"[-+]?[0-9]{1,18}", text)
    if isinstance(given, bool) or (kind == "int" and not whole):
        raise units.UnitError("is not a whole number", "write for example 350")
    if whole:
        return int(text)
    if not re.fullmatch(r"[-+]?[0-9]{0,18}\.?[0-9]{1,18}(e[-+]?[0-9]{1,2})?", text):
        raise units.UnitError("is not a number", "write for example 0.5")
    return float(text)


def _magnitude(kind: str, value: Any) -> Any:
    if kind in units.QUANTITIES:
        return units.parse(units.QUANTITIES[kind], value)
    return value if kind in ("int", "number") else None


class Substitution:
    """Replaces `${name}` in the file's data, and `$$` by `$`; a value that is only `${name}` keeps the
    parameter's type.
    """

    def __init__(self, document: Document, values: Mapping[str, Any], known: Mapping[str, Parameter]) -> None:
        self.document, self.values, self.known = document, values, known
        self.problems: list[Problem] = []
        self.used: set[str] = set()
        # paths in which a substitution failed; further mistakes there are not reported
        self.failed: set[Path] = set()

    def whole(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the file's data without the parameter section and with every use replaced; reports unused
        parameters.
        """
        kept = {key: self.replaced(value, (key,)) for key, value in data.items() if key != "parameters"}
        for name in self.known:
            if name not in self.used:
                rule, remedy = "is used nowhere", f"remove it, or write ${{{name}}} where it belongs"
                self.problems.append(self.document.problem(("parameters", name), "", rule, remedy))
        return kept

    def replaced(self, value: Any, path: Path) -> Any:
        if isinstance(value, dict):
            return {key: self.replaced(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.replaced(item, (*path, i)) for i, item in enumerate(value)]
        return self._text(value, path) if isinstance(value, str) else value

    def _text(self, text: str, path: Path) -> Any:
        self.used.update(_TEMPLATE_USE.findall(text))
        if "$" not in text:
            return text
        if alone := _ALONE.fullmatch(text):
            return self._value(alone[1], text, path)
        return _USE.sub(lambda match: self._inside(match, text, path), text)

    def _inside(self, match: re.Match[str], text: str, path: Path) -> str:
        if match[2] is None:
            return "$"
        value = self._value(match[2], text, path)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def _value(self, name: str, text: str, path: Path) -> Any:
        self.used.add(name)
        if name in self.values:
            return self.values[name]
        if name not in self.known:
            remedy = closest(name, self.known, what="parameters") + " (a literal ${ is written $${)"
            self.problems.append(
                self.document.problem(path, shown(text), f'no parameter is called "{name}"', remedy)
            )
        self.failed.add(path)
        return text
