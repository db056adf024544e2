"""Converts pydantic's errors to Problems with the line in the file, a rule and a remedy."""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ..language.problem import Problem, closest, shown
from ..language.scalars import LONGEST_NAME
from ..language.source import Document, Path
from .software import form

_ANSWERS = {
    "int_type": ("must be a whole number", "write a number without quotes or unit"),
    "int_parsing": ("must be a whole number", "write a number without quotes or unit"),
    "float_type": ("must be a number", "write a number without quotes or unit"),
    "bool_type": ("must be true or false", "write true or false"),
    "string_type": ("must be text", "put it in quotes"),
    "model_type": ("must be a mapping", "write `key: value` lines below it"),
    "dict_type": ("must be a mapping", "write `name: ...` lines below it"),
    "list_type": ("must be a list", "write [a, b]"),
}

# For each word of other tools: topology keys with the same meaning. The first one that the place accepts is
# suggested.
_SAME_WORD = {
    "bandwidth": ("rate",),
    "bw": ("rate",),
    "capacity": ("rate",),
    "speed": ("rate", "line_rate"),
    "throughput": ("rate",),
    "latency": ("delay",),
    "packet_loss": ("loss",),
    "loss_rate": ("loss",),
    "drop": ("loss",),
    "duplication": ("duplicate",),
    "corruption": ("corrupt",),
    "reordering": ("reorder",),
    "queue_size": ("limit",),
    "buffer": ("limit",),
    "duration": ("hold", "for"),
    "length": ("hold", "for"),
    "warmup": ("ramp",),
    "cool_down": ("drain",),
    "cmd": ("command",),
    "entrypoint": ("command",),
    "environment": ("env",),
    "volumes": ("files", "mounts"),
    "binds": ("mounts",),
    "replicas": ("count",),
    "scale": ("count",),
    "services": ("nodes",),
    "networks": ("segments",),
    "network": ("segment", "segments"),
    "endpoints": ("between",),
    "cpus": ("cpu_limit", "vcpus"),
    "mem_limit": ("memory_limit", "memory"),
    "frequency": ("rate",),
    "assertions": ("expect",),
    "thresholds": ("expect",),
}
# For each word that needs no key in vNET, the reason.
_NEEDLESS = {"ports": "no key publishes ports: nodes of a lab reach all ports of each other"}


def problems_of(
    error: ValidationError, model: type[BaseModel], document: Document, base: Path = ()
) -> list[Problem]:
    """Returns one Problem for each mistake; `base` is the path of the validated value in the file."""
    found = []
    for item in error.errors(include_url=False):
        loc = tuple(part for part in item["loc"] if part != "[key]")
        path = base + tuple(part for part in loc if not _is_tag(part))
        value = "" if item["type"] == "missing" else shown(item["input"])
        rule, remedy = _answer(item, model, loc)
        found.append(document.problem(path, value, rule, remedy))
    return found


def place_of(error: Mapping[str, Any]) -> Path:
    """Returns the path of a pydantic error in the data, without the tags of unions."""
    return tuple(part for part in error["loc"] if part != "[key]" and not _is_tag(part))


def _is_tag(part: int | str) -> bool:
    return isinstance(part, str) and part.startswith("<") and part.endswith(">")


def _answer(item: Any, model: type[BaseModel], loc: Path) -> tuple[str, str]:
    kind, context = item["type"], item.get("ctx", {})
    if kind == "rule":
        return context["rule"], context["remedy"]
    if kind == "extra_forbidden":
        owner = model_at(model, loc[:-1])
        return "is not a key here", _nearest(str(loc[-1]), keys_of(owner) if owner else [])
    if kind == "missing":
        owner = model_at(model, loc[:-1])
        return "is missing", f"write `{loc[-1]}:`{_explained(owner, str(loc[-1]))}"
    if kind == "literal_error":
        expected = context["expected"].replace("'", "")
        return "is not one of the values allowed here", f"write {expected}"
    if kind in _ANSWERS:
        return _ANSWERS[kind]
    return _bounded(kind, context, item["msg"])


def _of_other_tools(word: str, keys: Collection[str]) -> str | None:
    """Returns the remedy for another tool's word at a place with these keys; None for any other word."""
    if word in _NEEDLESS:
        return _NEEDLESS[word]
    same = next((key for key in _SAME_WORD.get(word.lower().replace("-", "_"), ()) if key in keys), None)
    return f'write "{same}"' if same else None


def _nearest(word: str, keys: list[str]) -> str:
    return _of_other_tools(word, keys) or closest(word, keys, what="keys", most=len(keys))


def _bounded(kind: str, context: dict[str, Any], message: str) -> tuple[str, str]:
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}", "write a larger one"
    if kind == "greater_than":
        return f"must be more than {context['gt']:g}", "write a larger one"
    if kind == "less_than_equal":
        return f"must be at most {context['le']}", "write a smaller one"
    if kind == "less_than":
        return f"must be less than {context['lt']:g}", "write a smaller one"
    if kind == "string_pattern_mismatch":
        return f"does not match {context['pattern']}", _spelling(context["pattern"])
    if kind == "string_too_long":
        return f"is longer than {context['max_length']} characters", "shorten it"
    if kind == "string_too_short":
        return "must not be empty", "write it, or leave the key out"
    if kind in ("too_short", "too_long"):
        limit = context.get("min_length", context.get("max_length"))
        word = "at least" if kind == "too_short" else "at most"
        return f"must have {word} {limit} items", "complete the list" if kind == "too_short" else "shorten it"
    return message[0].lower() + message[1:], "correct it"


def _spelling(pattern: str) -> str:
    if pattern.startswith("^[a-z]"):
        return f"use a-z, 0-9 and -, first a letter, at most {LONGEST_NAME} characters"
    if pattern.startswith("^(node|"):
        return 'write "node NAME", "segment NAME" or "link NAME"'
    return "rewrite it"


def _explained(owner: type[BaseModel] | None, key: str) -> str:
    if owner is None:
        return ""
    for name, info in owner.model_fields.items():
        if (info.alias or name) == key and info.description:
            return f" ({info.description.rstrip('.')})"
    return ""


def keys_of(model: type[BaseModel]) -> list[str]:
    """Returns the keys of a model, as files spell them."""
    return [info.alias or name for name, info in model.model_fields.items()]


def model_at(model: Any, loc: Path) -> type[BaseModel] | None:
    """Returns the model at path `loc` below `model`; None if there is none."""
    current = model
    for part in loc:
        current = _step(current, part)
    return current if isinstance(current, type) and issubclass(current, BaseModel) else None


def _step(hint: Any, part: int | str) -> Any:
    if _is_tag(part):
        return form(str(part))
    hint = _bare(hint)
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        fields = {info.alias or name: info.annotation for name, info in hint.model_fields.items()}
        return _bare(fields.get(str(part)))
    args = get_args(hint)
    return _bare(args[-1]) if get_origin(hint) in (dict, list) and args else None


def _bare(hint: Any) -> Any:
    """Returns the type inside Annotated and Optional; returns a union of several types unchanged."""
    while get_origin(hint) in (Annotated, Union, types.UnionType):
        kinds = [arg for arg in get_args(hint) if arg is not type(None)]
        if get_origin(hint) is not Annotated and len(kinds) > 1:
            return hint
        hint = kinds[0]
    return hint
