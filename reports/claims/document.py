"""Reads a claims.yaml (factor, quantities, claims) and reports each mistake with file and line."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from contract.chosen import SHORT, ChosenError, bracketed, column
from reports.claims.claim import Claim, Clients
from reports.claims.evidence import Factor, Level, Quantity
from reports.claims.expression import Expression, ExpressionError, parse
from reports.claims.figures import Figures
from reports.claims.rules import FEWEST_LEVELS, RULES, EveryLevel, Largest, NotJudged
from reports.claims.template import Template, parse_template
from reports.metrics.metric import OF, Of

KEYS = ("figure", "text", "rule", "judge", "clients", "printed", "set_up", "complete")
CHOOSE = (
    "class",
    SHORT,
    *OF,
)  # keys that choose values: the short keys of expectations, and the columns of summary.json
WORDS = {bool: "true or false", str: "text", int: "a whole number"}


class ClaimsError(ValueError):
    """Raised if a claims file has mistakes; the text has one line for each, with place, value, rule and
    remedy.
    """


@dataclass(frozen=True)
class LeftOut:
    """A figure, table or sentence of the work that nobody has tried to repeat here, and why."""

    key: str
    figures: str
    text: str
    because: str


@dataclass(frozen=True)
class Claims:
    """The content of a claims file: the factor, the named quantities, the claims, and the list of what was
    not tried.
    """

    factor: Factor
    quantities: dict[str, Quantity]
    claims: tuple[Claim, ...]
    not_attempted: tuple[LeftOut, ...] = ()


@functools.cache
def read_claims(path: Path) -> Claims:
    """Returns the claims of the file, cached by path; ClaimsError if anything in the file is wrong, OSError
    if it cannot be read.
    """
    try:
        data = YAML(typ="rt").load(path.read_text(encoding="utf-8"))
    except YAMLError as error:
        raise ClaimsError(f"{path}: is no YAML: {error}") from error
    reader = _Reader(path)
    try:
        found = reader.claims(data)
    except _StopError:
        found = None
    if reader.problems or found is None:
        raise ClaimsError("\n".join(reader.problems))
    return found


class _StopError(Exception):
    """Raised if the part of the file that is being read cannot be read further; the mistake is already in
    `problems`.
    """


class _Reader:
    """Reads a claims file part by part and collects its mistakes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []
        self.factor = Factor("", "", ())
        self.quantities: dict[str, Quantity] = {}

    def note(self, line: int, place: str, rule: str) -> _StopError:
        self.problems.append(f"{self.path}:{line}: {place}: {rule}")
        return _StopError()

    def claims(self, data: Any) -> Claims:
        self.only(data, 1, "", ("factor", "quantities", "claims", "not_attempted"))
        of_factor = self.mapping(data, "", "factor", ("name", "title", "levels"))
        self.factor = Factor(
            self.text(of_factor, "factor", "name"),
            self.text(of_factor, "factor", "title"),
            self.levels(of_factor),
        )
        for name in self.mapping(data, "", "quantities"):
            for quantity in self.each(self.quantity, data["quantities"], name):
                self.quantities[name] = quantity
        of_claims = self.mapping(data, "", "claims")
        found = [claim for key in of_claims for claim in self.each(self.claim, of_claims, key)]
        left = self.mapping(data, "", "not_attempted") if "not_attempted" in data else {}
        skipped = [one for key in left for one in self.each(self.left_out, left, key)]
        return Claims(self.factor, self.quantities, tuple(found), tuple(skipped))

    def each(self, read: Any, parent: Any, key: str) -> Iterator[Any]:
        """Yields the result of `read(parent, key)`, or nothing if `read` stops at a mistake, which is then in
        `problems`.
        """
        try:
            yield read(parent, key)
        except _StopError:
            return

    def levels(self, of_factor: Any) -> tuple[Level, ...]:
        levels = of_factor["levels"]
        if not isinstance(levels, list) or not levels:
            line = _line(of_factor, "levels")
            raise self.note(line, "factor.levels", f"{levels!r} is no list; write its levels in order")
        return tuple(levels)

    def quantity(self, parent: Any, name: str) -> Quantity:
        place = f"quantities.{name}"
        data = self.mapping(parent, "quantities", name)
        many = data.get("any_of")
        self.only(
            data, _line(parent, name), place, ("metric", "scenario", *(("any_of",) if many else CHOOSE))
        )
        metric, within = self.bracketed(self.text(data, place, "metric"), _line(data, "metric"), place)
        subjects = many if isinstance(many, list) else [{k: v for k, v in data.items() if k in CHOOSE}]
        for one in subjects:
            if not isinstance(one, dict):
                raise self.note(
                    _line(data, "any_of"), place, f"{one!r} is no mapping; write {{nodes: broker}}"
                )
            self.only({**one, **within}, _line(parent, name), place, CHOOSE)
        of = tuple(
            self.subject((*one.items(), *within.items()), _line(parent, name), place) for one in subjects
        )
        return Quantity(name, metric, of, self.text(data, place, "scenario"))

    def bracketed(self, text: str, line: int, place: str) -> tuple[str, dict[str, Any]]:
        """Returns the metric of a text such as `latency_p99[class=site-a]`, and its keys as expectations have
        them.
        """
        try:
            return bracketed(text)
        except ChosenError as error:
            raise self.note(line, f"{place}.metric", f"{text!r}: {error}") from error

    def subject(self, chosen: Iterable[tuple[str, Any]], line: int, place: str) -> Of:
        """Returns the subject that the keys choose; each column may occur once."""
        found: dict[str, Any] = {}
        for key, value in chosen:
            name, value = (key, value) if key in OF else column(key, value) or (key, value)
            if name in found:
                raise self.note(line, f"{place}.{key}", f"chooses {name} twice; leave one of them out")
            found[name] = value
        return Of(**found)

    def claim(self, parent: Any, key: str) -> Claim:
        place = f"claims.{key}"
        data = self.mapping(parent, "claims", key)
        self.only(data, _line(parent, key), place, KEYS)
        clients = self.clients(data, place) if "clients" in data else None
        words = {name: self.text(data, place, name) for name in ("figure", "text", "rule")}
        more = {name: self.text(data, place, name) for name in ("printed", "set_up") if name in data}
        how, names = self.rule(data, place)
        complete = self.complete(data, place)
        names = tuple(dict.fromkeys((*names, *(complete.names if complete else ()))))
        quantities = tuple(self.quantities[name] for name in names)
        if more.get("printed") and not isinstance(how, EveryLevel | Largest | NotJudged):
            line = _line(data, "printed")
            raise self.note(line, f"{place}.printed", "needs a rule on the value: every_level or largest")
        return Claim(
            key, words["figure"], words["text"], words["rule"], how, quantities, clients, **more,
            complete=complete,
        )  # fmt: skip

    def complete(self, data: Any, place: str) -> Expression | None:
        """Returns the expression for the share of messages on which the judged figures are based."""
        if "complete" not in data:
            return None
        found = self.formula(data["complete"], _line(data, "complete"), f"{place}.complete", Expression)
        return found if isinstance(found, Expression) else None

    def left_out(self, parent: Any, key: str) -> LeftOut:
        place = f"not_attempted.{key}"
        data = self.mapping(parent, "not_attempted", key, ("figure", "text", "because"))
        return LeftOut(key, *(self.text(data, place, name) for name in ("figure", "text", "because")))

    def clients(self, data: Any, place: str) -> Clients:
        known = ("published", "at_least", "at_most")
        found = self.mapping(data, place, "clients", known)
        for name in known:
            if not isinstance(found[name], int):
                raise self.note(
                    _line(found, name), f"{place}.clients.{name}", f"{found[name]!r} is no whole number"
                )
        return Clients(**found)

    def rule(self, data: Any, place: str) -> tuple[Any, tuple[str, ...]]:
        """Returns the rule of a claim, and the names of the quantities in its expressions and sentence;
        _StopError if the mapping `judge` is wrong.
        """
        judge = self.mapping(data, place, "judge")
        place, line = f"{place}.judge", _line(data, "judge")
        kinds = [name for name in judge if name in RULES]
        if len(kinds) != 1:
            raise self.note(line, place, f"names {len(kinds)} rules; write one of {', '.join(RULES)}")
        cls = RULES[kinds[0]]
        hints = get_type_hints(cls)
        wanted = [field for field in fields(cls) if field.name != "figures"]  # type: ignore[arg-type]  # all are dataclasses
        self.only(judge, line, place, tuple(field.name for field in wanted))
        fewest, levels = FEWEST_LEVELS.get(kinds[0], 1), len(self.factor.levels)
        if levels < fewest:
            remedy = "add levels, or write every_level"
            raise self.note(
                line, place, f"{kinds[0]} compares {fewest} or more levels, {levels} given; {remedy}"
            )
        values: dict[str, Any] = {"figures": Figures(self.quantities)}
        for field in wanted:
            if field.name in judge:
                values[field.name] = self.field(judge, place, field.name, hints[field.name])
            elif field.default is MISSING:
                raise self.note(line, f"{place}.{field.name}", "is missing")
        single = [one for v in values.values() for one in (v if isinstance(v, tuple) else (v,))]
        used = [v.names for v in single if isinstance(v, Expression | Template)]
        try:
            return cls(**values), tuple(dict.fromkeys(name for names in used for name in names))
        except ExpressionError as error:
            raise self.note(line, place, str(error)) from error

    def field(self, judge: Any, place: str, name: str, hint: Any) -> Any:
        value, line, place = judge[name], _line(judge, name), f"{place}.{name}"
        if hint in (Expression, Template):
            return self.formula(value, line, place, hint)
        if hint == tuple[Expression, ...]:
            if not isinstance(value, list) or not value:
                raise self.note(line, place, f"{value!r} is no list of expressions")
            return tuple(self.formula(one, line, place, Expression) for one in value)
        if hint == Level | None:
            if value not in self.factor.levels:
                levels = ", ".join(str(level) for level in self.factor.levels)
                raise self.note(line, place, f"{value!r} is no level of {self.factor.name}; write {levels}")
            return value
        if hint in (bool, str, int):
            if type(value) is not hint and not (hint is str and isinstance(value, str)):
                raise self.note(line, place, f"{value!r} is not {WORDS[hint]}")
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.note(line, place, f"{value!r} is not a number")
        return float(value)

    def formula(self, value: Any, line: int, place: str, hint: Any) -> Expression | Template:
        try:
            found = parse(str(value)) if hint is Expression else parse_template(str(value))
        except ExpressionError as error:
            raise self.note(line, place, str(error)) from error
        if unknown := [name for name in found.names if name not in self.quantities]:
            known = ", ".join(self.quantities)
            raise self.note(line, place, f"{unknown[0]} is no figure of this file; known are {known}")
        if hint is Expression and not found.names:
            raise self.note(line, place, "names no figure")
        return found

    def mapping(self, parent: Any, place: str, key: str, known: tuple[str, ...] = ()) -> Any:
        """Returns the mapping below `key`; _StopError if there is none. If `known` is not empty, the mapping
        must have all of those keys and no others.
        """
        where = f"{place}.{key}".strip(".")
        found = parent.get(key)
        if not isinstance(found, dict):
            line = _line(parent, key) if key in parent else _line(parent)
            raise self.note(line, where, f"{found!r} is no mapping")
        if known:
            self.only(found, _line(parent, key), where, known)
            if absent := [name for name in known if name not in found]:
                raise self.note(_line(parent, key), f"{where}.{absent[0]}", "is missing")
        return found

    def only(self, data: Any, line: int, place: str, known: tuple[str, ...]) -> None:
        if not isinstance(data, dict):
            raise self.note(line, place or "the file", "is no mapping")
        for key in data:
            if key not in known:
                where = f"{place}.{key}".strip(".")
                raise self.note(_line(data, key, line), where, f"is not known; known are {', '.join(known)}")

    def text(self, data: Any, place: str, key: str) -> str:
        found = data.get(key)
        if found is None or isinstance(found, list | dict) or found == "":
            line = _line(data, key) if key in data else _line(data)
            raise self.note(
                line, f"{place}.{key}", "is missing; write text" if found is None else "is no text"
            )
        return str(found)


def _line(data: Any, key: str | None = None, otherwise: int = 1) -> int:
    """Returns the line number, from 1, of a mapping or of one of its keys; `otherwise` for data without line
    numbers.
    """
    place = getattr(data, "lc", None)
    if place is None:
        return otherwise
    return int(place.line if key is None else place.key(key)[0]) + 1
