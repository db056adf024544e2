"""Defines the keys of a name server in a topology file."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from ...language.scalars import Base, Duration, Name, reader, text
from ...language.units import UnitError

LONGEST = 253  # longest name in characters (RFC 1035, 2.3.4)
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?"
_PATTERN = rf"{_LABEL}(\.{_LABEL})*"


def _domain(value: Any) -> str:
    if isinstance(value, str) and len(value) <= LONGEST and re.fullmatch(_PATTERN, value):
        return value
    rule = "is not the name of a host or domain (RFC 1035): labels of a-z, 0-9 and -, with dots between"
    raise UnitError(rule, 'write for example "files.plant.test"')


Domain = Annotated[str, reader(_domain), WithJsonSchema({"type": "string", "pattern": f"^{_PATTERN}$"})]


class DnsOptions(Base):
    """A name server of the topology's own names."""

    domain: Domain | None = Field(None, description="Every node has the name NODE.DOMAIN.")
    names: dict[Domain, Name] = Field(
        default_factory=dict, description="Further names, each with the node whose address it has."
    )
    forward: Name | None = Field(
        None, description="The node whose `dns` resolves all other names; without it they do not exist."
    )
    ttl: Duration = Field(
        text("0 s"), description="Time to live of the server's own answers, in whole seconds."
    )


class Dns(Base):
    """A name server."""

    dns: DnsOptions = Field(description="Its names.")
