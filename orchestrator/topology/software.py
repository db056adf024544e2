"""Defines the field type of software: validates each entry with the model of its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Discriminator, GetCoreSchemaHandler, GetJsonSchemaHandler, Tag, TypeAdapter
from pydantic_core import CoreSchema, core_schema

from ..language.scalars import Base, fail
from ..software.registry import KINDS, MODULES

KEYS = list(dict.fromkeys(module.key for module in MODULES.values()))


def form(tag: str) -> type[Base]:
    """Returns the model of the kind that a tag in an error's location names."""
    return KINDS[tag[1:-1]].model


def _tag(value: Any) -> str | None:
    """Returns the tag of a value's kind; None unless the value has exactly one kind's key. If kinds share the
    key, its value decides, else the first kind.
    """
    if isinstance(value, Base):
        return f"<{KINDS.of(value).name}>"
    keys = [key for key in KEYS if isinstance(value, dict) and key in value]
    if len(keys) != 1:
        return None
    names = [name for name, module in MODULES.items() if module.key == keys[0]]
    named = str(value[keys[0]])
    return f"<{named if named in names else names[0]}>"


class _OneKind:
    """Validates a value with the model of its kind, which is loaded only then.

    If a validator raises a ValidationError, pydantic takes over each mistake with its place.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        kinds: dict[Any, Any] = {
            f"<{name}>": core_schema.no_info_plain_validator_function(_reader(name)) for name in MODULES
        }
        # The tags stand in error locations; the angle brackets tell them from keys of the file.
        union = core_schema.tagged_union_schema(kinds, discriminator=_tag)
        return core_schema.no_info_wrap_validator_function(_of_a_kind, union)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        models = tuple(Annotated[kind.model, Tag(f"<{name}>")] for name, kind in KINDS.items())
        union: Any = Annotated[Union[models], Discriminator(_tag)]  # noqa: UP007
        return handler(TypeAdapter(union).core_schema)


def _reader(name: str) -> Callable[[Any], Base]:
    return lambda value: KINDS[name].model.model_validate(value)


def _of_a_kind(value: Any, read: Callable[[Any], Base]) -> Base:
    if _tag(value) is not None:
        return read(value)
    listed = f"{', '.join(KEYS[:-1])} and {KEYS[-1]}"
    examples = " or ".join(f'"{kind.example}"' for kind in KINDS.values() if not kind.in_agent)
    raise fail(f"software has exactly one of the keys {listed}", f"write for example {examples}")


if TYPE_CHECKING:
    Software = Base
else:
    Software = Annotated[Base, _OneKind]
