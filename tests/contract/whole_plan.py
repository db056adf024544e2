"""Completes a partial plan of a test with default values."""

from __future__ import annotations

import dataclasses
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from contract.codec import build
from contract.plan import PLAN_FORMAT, Plan


def plan_of(given: dict[str, Any] | None = None) -> Plan:
    """Returns the plan with these parts and default values for the rest."""
    return build(Plan, whole(Plan, given))


def whole(hint: Any, given: Any = None) -> Any:
    """Returns a value of that type as JSON: the given parts, and neutral values for the rest."""
    origin, args = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        known, hints = given or {}, get_type_hints(hint)
        known = {"format": PLAN_FORMAT} | known if hint is Plan else known
        rest = [
            f.name for f in dataclasses.fields(hint) if f.default is f.default_factory is dataclasses.MISSING
        ]
        return {
            name: whole(hints[name], known.get(name))
            for name in {**dict.fromkeys(rest), **known}
            if name in hints
        } | {name: value for name, value in known.items() if name not in hints}
    if origin in (Union, types.UnionType):
        return None if given is None else whole(next(a for a in args if a is not type(None)), given)
    if origin is tuple:
        return [whole(args[0], one) for one in given or ()]
    if origin is dict:
        return given or {}
    if given is not None:
        return given
    return args[0] if origin is Literal else hint() if hint in (str, int, float, bool) else None
