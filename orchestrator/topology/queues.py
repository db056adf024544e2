"""Defines the keys of a direction's queue, from the settings that each kind of queue describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, create_model, model_validator

from contract.plan import Band as PlanBand
from contract.plan import Discipline

from ..language.dscp import Dscp
from ..language.scalars import Base, Duration, Name, Port, Positive, Rate, Share, Size, fail
from ..queueing import QUEUE_KINDS, settings
from ..queueing.discipline import QueueKind
from ..queueing.settings import REQUIRED, Form, Key


def _several(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


Pcp = Annotated[int, Field(ge=0, le=7)]


def _or_one(schema: dict[str, Any]) -> None:
    """Changes the schema for editors so that it accepts a single value in place of a list."""
    items = {key: schema.pop(key) for key in ("type", "items") if key in schema}
    schema["anyOf"] = [items, items.get("items", {})]


Dscps = Annotated[list[Dscp], BeforeValidator(_several), Field(json_schema_extra=_or_one)]
Pcps = Annotated[list[Pcp], BeforeValidator(_several), Field(json_schema_extra=_or_one)]
Ports = Annotated[list[Port], BeforeValidator(_several), Field(json_schema_extra=_or_one)]


class Band(Base):
    """Packets that queue together. A packet belongs to a band if it matches any of its keys; the one band
    without such keys takes all other packets.
    """

    pcp: Pcps = Field(default_factory=list, description="Priority code points of 802.1Q tags, 0 to 7.")
    dscp: Dscps = Field(default_factory=list, description="DSCP of IPv4 and IPv6: EF, AF41, CS6 or a number.")
    port: Ports = Field(
        default_factory=list, description="TCP or UDP port, on either side; IPv4 without fragments."
    )
    limit: Positive = Field(1000, le=2**31 - 1, description="Length of the band's queue, packets.")


_FORMS: dict[Form, Any] = {
    "duration": Duration, "size": Size, "share": Share, "rate": Rate, "count": int, "flag": bool
}  # fmt: skip


def _key(key: Key) -> tuple[Any, Any]:
    """Returns the type and the field of a key, for pydantic."""
    kind: Any = Literal[key.choices] if key.form == "choice" else _FORMS[key.form]
    default = ... if key.default == REQUIRED else key.default
    field: Any = Field(default, ge=key.least, le=key.most, description=key.meaning)
    return kind if key.default is not None else kind | None, field


def _inside(queue_kind: QueueKind) -> Any:
    """Returns the type of a queue's value in a file: a model of the settings of its kind, or bands
    by name.
    """
    if queue_kind.bands is None:
        keys: dict[str, Any] = {key.name: _key(key) for key in settings.keys(queue_kind.settings).values()}
        return create_model(
            queue_kind.settings.__name__, __base__=Base, __doc__=queue_kind.settings.__doc__, **keys
        )
    if not queue_kind.bands.keys:
        return dict[Name, Band]
    keys = {key.name: _key(key) for key in queue_kind.bands.keys.values()}
    band = create_model(queue_kind.bands.model, __base__=Band, __doc__=queue_kind.bands.meaning, **keys)
    return dict[Name, band]  # type: ignore[valid-type]  # a class made here


class _Queue(Base):
    """The queue of packets that the `rate` cannot send at once, of one kind. The default is first in, first
    out.
    """

    @model_validator(mode="wrap")
    @classmethod
    def _of_a_plugin(cls, value: Any, read: ModelWrapValidatorHandler[Any]) -> Any:
        """Validates a queue that names a kind of a plug-in with a model that has the kind's key, too."""
        unknown = [k for k in value if k not in cls.model_fields] if isinstance(value, dict) else []
        more = {kind: QUEUE_KINDS[kind] for kind in unknown if kind in QUEUE_KINDS}
        if more:
            return create_model("Queue", __base__=cls, **_fields(more)).model_validate(value)
        for refused in QUEUE_KINDS.strangers.refused if unknown else ():
            if refused.offer.name in unknown:
                raise fail(f"`{refused.offer.name}` is of a {refused}", "`vnet plugins` lists the plug-ins")
        return read(value)

    @property
    def kinds(self) -> list[str]:
        """The kinds of queue that the file states; the checks require exactly one."""
        return [name for name in type(self).model_fields if getattr(self, name) is not None]

    def discipline(self, rate_bps: int | None) -> Discipline:
        """Returns the plan's queue, since the file states exactly one kind. `rate_bps`: the rate of the
        direction.
        """
        (kind,) = self.kinds
        queue_kind, inside = QUEUE_KINDS[kind], getattr(self, kind)
        if queue_kind.bands is not None:
            own = queue_kind.bands.keys
            return queue_kind.planned({}, tuple(_band(n, b, own) for n, b in inside.items()), rate_bps or 0)
        values = {name: getattr(inside, key.name) for name, key in settings.keys(queue_kind.settings).items()}
        return queue_kind.planned(values, (), rate_bps or 0)


def _band(name: str, band: Band, keys: Mapping[str, Key]) -> PlanBand:
    own: dict[str, Any] = {
        field: 0 if (value := getattr(band, key.name)) is None else value for field, key in keys.items()
    }
    return PlanBand(name, tuple(band.pcp), tuple(band.dscp), tuple(band.port), band.limit, **own)


def _fields(queue_kinds: Mapping[str, QueueKind]) -> dict[str, Any]:
    """Returns the keys of kinds of queue, for pydantic's create_model."""
    return {
        kind: (_inside(queue_kind) | None, Field(None, description=queue_kind.meaning))
        for kind, queue_kind in queue_kinds.items()
    }


if TYPE_CHECKING:
    Queue = _Queue
else:
    Queue = create_model("Queue", __base__=_Queue, __doc__=_Queue.__doc__, **_fields(QUEUE_KINDS))
