"""Defines the keys that publishers of both IEC 61850 protocols share, and the values that differ between the
protocols.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from ...language.scalars import Base, Name, fail

_GROUP = re.compile(r"01([:-])0C\1CD\1(0[14])\1([0-9A-F]{2})\1([0-9A-F]{2})", re.IGNORECASE)


def _group(value: Any) -> str:
    """Returns a group address of IEC 61850 in upper case with dashes; fails for any other value."""
    if isinstance(value, str) and _GROUP.fullmatch(value):
        return value.upper().replace(":", "-")
    raise fail("is no group address of IEC 61850", 'write for example "01-0C-CD-04-00-01"')


def _appid(value: Any) -> int:
    """Returns an APPID as a number; accepts an integer or a text of 0x and one to four hexadecimal digits,
    and fails for any other value.
    """
    if isinstance(value, str) and re.fullmatch(r"0x[0-9A-Fa-f]{1,4}", value):
        return int(value, 16)
    if isinstance(value, bool) or not isinstance(value, int):
        raise fail("is no APPID", "write four hexadecimal digits, for example 0x4001")
    return value


_APPIDS = {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^0x[0-9A-Fa-f]{1,4}$"}]}
Appid = Annotated[int, BeforeValidator(_appid), WithJsonSchema({"title": "APPID", **_APPIDS})]
Group = Annotated[
    str,
    BeforeValidator(_group),
    WithJsonSchema({"type": "string", "title": "group", "pattern": _GROUP.pattern}),
]


class Published(Base):
    """The keys that all publishers directly above Ethernet share."""

    segment: Name | None = Field(None, description="Segment of the frames; by default the node's first one.")
    appid: Appid = Field(description="Application identifier.")
    destination: Group = Field(description="Group address.")
    vlan: int | None = Field(
        None, ge=0, le=4094, description="VLAN of the tag; 0: a tag with the priority only."
    )
    pcp: int | None = Field(None, ge=0, le=7, description="Priority in the tag (4).")
    conf_rev: int = Field(1, ge=0, lt=2**32, description="Revision of the configuration.")


@dataclass(frozen=True, slots=True)
class Rules:
    """The values that differ between the protocols: key, range of APPIDs, group address, name and
    standard.
    """

    kind: str  # the kind of software, which is also its key in the file
    appids: tuple[int, int]  # the first and the last allowed APPID
    group: str  # the first bytes of the kind's group addresses
    name: str  # the key in the file that identifies a stream together with the APPID
    standard: str


def options_of(model: Any, kind: str) -> Any:
    """Returns the options below the kind's key; None for software of another kind."""
    return getattr(model, kind.replace("-", "_"), None)
