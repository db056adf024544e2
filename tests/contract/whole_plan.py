"""Makes a plan of which a test says a part into a whole one."""

from __future__ import annotations

import dataclasses
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from contract.codec import build
from contract.plan import PLAN_FORMAT, Plan


def plan_of(given: dict[str, Any] | None = None) -> Plan:
    """The plan with these parts."""
    return build(Plan, whole(Plan, given))


def whole(hint: Any, given: Any = None) -> Any:
    """JSON of a value of that type: what is given of it, and for the rest a value that says nothing."""
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
