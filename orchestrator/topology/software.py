"""Defines the field type of software: validates each entry with the model of its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Discriminator, GetCoreSchemaHandler, GetJsonSchemaHandler, Tag, TypeAdapter
from pydantic_core import CoreSchema, SchemaValidator, core_schema

from ..language.scalars import Base, fail
from ..software.registry import KINDS, MODULES, SHARED

KEYS = list(dict.fromkeys(module.key for module in MODULES.values()))


def form(tag: str) -> type[Base]:
    """Returns the model of the kind that belongs to a tag in an error's location."""
    return KINDS[tag[1:-1]].model


def _tag(value: Any) -> str | None:
    """Returns the tag of a value's kind; None unless the value has the key of exactly one kind. If several
    kinds share the key, its value selects the kind; otherwise it is the first of them.
    """
    if isinstance(value, Base):
        return f"<{KINDS.of(value).name}>"
    keys = [key for key in KEYS if isinstance(value, dict) and key in value]
    if len(keys) != 1:
        return None
    return f"<{_chosen([name for name, module in MODULES.items() if module.key == keys[0]], value, keys[0])}>"


def _chosen(names: list[str], value: dict[Any, Any], key: str) -> str:
    named = str(value[key])
    return named if named in names else names[0]


def _stranger(value: Any) -> str | None:
    """Returns the tag of a value if its kind is a plug-in's. The value then has a key of a plug-in's kind and
    of no other kind, or the name of a plug-in and a key that several kinds share. None for other values.
    Loads plug-ins unless the value is of one of vNET's own kinds.
    """
    if not isinstance(value, dict):
        return None
    keys = [key for key in KEYS if key in value]
    if len(keys) == 1 and (keys[0] not in SHARED or str(value[keys[0]]) in MODULES):
        return None
    strangers = {name: kind.key for name, (_, kind) in KINDS.strangers.usable.items()}
    if len({*keys, *(key for key in strangers.values() if key in value)}) != 1:
        return None
    names = [name for name, key in strangers.items() if key in value]
    named = next(
        (name for name in names if strangers[name] == name or str(value[strangers[name]]) == name), None
    )
    return None if named is None else f"<{named}>"


class _OneKind:
    """Validates a value with the model of its kind, which is loaded only then.

    If a validator raises a ValidationError, pydantic takes over each mistake with its place.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        kinds: dict[Any, Any] = {
            f"<{name}>": core_schema.no_info_plain_validator_function(_reader(name)) for name in MODULES
        }
        # The tags are parts of error locations; the angle brackets distinguish them from keys of the file.
        union = core_schema.tagged_union_schema(kinds, discriminator=_tag)
        return core_schema.no_info_wrap_validator_function(_of_a_kind, union)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        models = tuple(Annotated[kind.model, Tag(f"<{name}>")] for name, kind in KINDS.all().items())
        union: Any = Annotated[Union[models], Discriminator(_tag)]  # noqa: UP007
        return handler(TypeAdapter(union).core_schema)


def _reader(name: str) -> Callable[[Any], Base]:
    return lambda value: KINDS[name].model.model_validate(value)


def _of_a_kind(value: Any, read: Callable[[Any], Base]) -> Base:
    if (tag := _stranger(value)) is not None:
        return _read_stranger(tag, value)
    if _tag(value) is not None:
        return read(value)
    for refused in KINDS.strangers.refused if isinstance(value, dict) else ():
        if refused.offer.name in value:
            raise fail(f"`{refused.offer.name}` is of a {refused}", "`vnet plugins` lists the plug-ins")
    known = list(dict.fromkeys((*KEYS, *(kind.key for _, kind in KINDS.loaded.values()))))
    listed = f"{', '.join(known[:-1])} and {known[-1]}"
    examples = " or ".join(f'"{kind.example}"' for kind in KINDS.values() if not kind.in_agent)
    raise fail(f"software has exactly one of the keys {listed}", f"write for example {examples}")


def _read_stranger(tag: str, value: Any) -> Base:
    """Validates a value with a plug-in's model; its mistakes have the tag in their locations, as those of
    other kinds do.
    """
    reader: Any = core_schema.no_info_plain_validator_function(_reader(tag[1:-1]))
    read: Base = SchemaValidator(
        core_schema.tagged_union_schema({tag: reader}, discriminator=lambda _value: tag)
    ).validate_python(value)
    return read


if TYPE_CHECKING:
    Software = Base
else:
    Software = Annotated[Base, _OneKind]
