"""Describes the settings of a kind of queue as data. From this data, vNET makes the keys of topology files,
the checks of their form, the reference of keys, and the text of a queue in the notation of files.

A kind's settings are a frozen dataclass whose fields are made by the functions here. A field holds the plan's
value (`target_ns`), and its Key defines its form in files (`target: 5 ms`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from contract.plan import Discipline, Impairment

MOST = 2**31 - 1
REQUIRED = "required"  # as default: the key must stand in the file
Form = Literal["duration", "size", "share", "rate", "count", "flag", "choice"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a kind of queue in topology files.

    default: in the file's notation; REQUIRED if there is none; None if an absent key has a meaning of its
    own, which the kind's `planned` replaces by a value.
    """

    name: str
    form: Form
    default: Any
    meaning: str
    least: int | None = None  # least value of a setting that is a count
    most: int | None = None
    choices: tuple[str, ...] = ()  # the allowed values of a setting that is a choice


def _field(key: Key) -> Any:
    return dataclasses.field(metadata={"key": key})


def duration(name: str, default: Any, meaning: str) -> Any:
    """Returns a field in ns."""
    return _field(Key(name, "duration", default, meaning))


def size(name: str, default: Any, meaning: str) -> Any:
    """Returns a field in bytes."""
    return _field(Key(name, "size", default, meaning))


def share(name: str, default: Any, meaning: str) -> Any:
    """Returns a field from 0 to 1."""
    return _field(Key(name, "share", default, meaning))


def rate(name: str, default: Any, meaning: str) -> Any:
    """Returns a field in bit/s."""
    return _field(Key(name, "rate", default, meaning))


def count(name: str, default: Any, meaning: str, least: int = 1, most: int = MOST) -> Any:
    """Returns a field that is a whole number from `least` to `most`."""
    return _field(Key(name, "count", default, meaning, least, most))


def flag(name: str, default: bool, meaning: str) -> Any:
    """Returns a field that is True or False."""
    return _field(Key(name, "flag", default, meaning))


def choice(name: str, choices: tuple[str, ...], default: str, meaning: str) -> Any:
    """Returns a field that is one of these words."""
    return _field(Key(name, "choice", default, meaning, choices=choices))


def keys(settings: Any) -> dict[str, Key]:
    """Returns the keys of a class of settings, by the names of its fields."""
    return {field.name: field.metadata["key"] for field in dataclasses.fields(settings)}


def settings_of(kind: type[T], wanted: Impairment) -> T:
    """Returns the settings of the impairment's queue; `kind` is the class of settings of its kind."""
    assert wanted.queue is not None
    return kind(**wanted.queue.settings)


def discipline(kind: str, settings: Any) -> Discipline:
    """Returns a queue of that kind with settings of the kind's class."""
    return Discipline(kind, dataclasses.asdict(settings))


def written(of: type[Any], values: Mapping[str, Any]) -> dict[str, str]:
    """Returns settings in the notation of topology files, by key; omits settings that are None."""
    return {
        key.name: text(key, values[name]) for name, key in keys(of).items() if values.get(name) is not None
    }


def text(key: Key, value: Any) -> str:
    """Returns a value in the notation of files, exactly: in the base unit if the usual text would
    round it.
    """
    from ..language import units  # imported here, because every import makes the start of a lab slower

    if key.form in ("count", "choice"):
        return str(value)
    if key.form == "flag":
        return str(value).lower()
    show, quantity, base = {
        "duration": (units.text_ns, units.DURATION, "ns"), "size": (units.text_bytes, units.SIZE, "B"),
        "rate": (units.text_bps, units.RATE, "bit/s"), "share": (units.text_share, units.SHARE, "%"),
    }[key.form]  # fmt: skip
    usual = show(value)
    if units.real(quantity, usual) == value:
        return usual
    return f"{value * 100:.12g} %" if key.form == "share" else f"{value} {base}"
