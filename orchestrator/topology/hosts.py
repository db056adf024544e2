"""Defines the keys of a multi-host lab: its hosts and the network between them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from contract.plan.hosts import BRIDGE_PORTS, VXLAN_PORT

from ..language.scalars import (
    Address,
    Base,
    CpuAmount,
    Duration,
    Nic,
    Port,
    Positive,
    Size,
    fail,
    reader,
    text,
)
from ..language.units import UnitError
from ..language.uris import kernel_machine

LOCAL = "local"  # the name of this machine
HOST_PATTERN = r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
# names that columns `where` of host.parquet and `machine` of figures have for places other than hosts
OTHER_PLACES = {
    "lab": "the lab's own kernel",
    "outer": "the machine around it",
    "model": "the core of virtual time",
}
EXAMPLE = 'write for example "ssh://root@lab7"'


def _machine(value: Any) -> str:
    """Parses the machine of a host and returns its URL; "" for this machine."""
    if value == LOCAL:
        return ""
    if not isinstance(value, str):
        raise UnitError("is not ssh://[USER@]HOST[:PORT][/KERNEL]", f"{EXAMPLE}, or {LOCAL}")
    return kernel_machine(value).url


def _clock(value: Any) -> Any:
    if getattr(value, "cores", None) is not None:
        raise fail("is no clock", 'write for example "2.4 GHz"')
    return value


def _cores(value: Any) -> float:
    """Parses a number of cores, with or without the unit."""
    number = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(cores?)?\s*", str(value))
    if isinstance(value, bool) or number is None or float(number[1]) <= 0:
        raise UnitError("is no number of cores", "write for example 16")
    return float(number[1])


def _free(name: str) -> str:
    if name in OTHER_PLACES:
        raise fail(f"is what a run's tables call {OTHER_PLACES[name]}", f"write another name: {name}1")
    return name


HostName = Annotated[str, Field(pattern=HOST_PATTERN), AfterValidator(_free)]


class Host(Base):
    """A machine that carries a part of the lab. The inventory supplies missing keys."""

    machine: Annotated[
        str | None,
        reader(lambda v: None if v is None else _machine(v)),
        WithJsonSchema({"type": "string", "pattern": "^(ssh://.+|local)$"}),
    ] = Field(
        None, description="`ssh://[USER@]HOST[:PORT][/KERNEL]`, or `local`: the machine of the command."
    )
    address: Address | None = Field(
        None,
        description=(
            "Address at which the other hosts reach this one, for tunnels; by default the host reports it."
        ),
    )
    cores: Annotated[
        float | None,
        reader(lambda v: None if v is None else _cores(v)),
        WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
    ] = Field(None, description="Cores that the lab may reserve; also its share of the lab's work.")
    cpu_clock: Annotated[CpuAmount, AfterValidator(_clock)] | None = Field(
        None, description="Clock of one core, for reservations in MHz."
    )
    memory: Size | None = Field(None, description="Memory that the lab may take.")
    bridge_ports: Positive = Field(
        BRIDGE_PORTS, le=BRIDGE_PORTS, description="Most ports of one bridge, its tunnel's among them."
    )
    nics: list[Nic] | None = Field(
        None,
        description=(
            "NICs of this host that `nic` and `nics` may name; a node that names one is placed on this host."
        ),
    )


class Underlay(Base):
    """The network between the hosts. The plan states its effects on the lab; a run measures it."""

    mtu: int = Field(1500, ge=576, le=65535, description="Bytes; a tunnel takes 50 of them (IPv6: 70).")
    delay: Duration = Field(
        text("0 s"), description="One-way delay that the underlay adds, as far as it is known."
    )
    oversize: Literal["fragment", "lower", "refuse"] = Field(
        "fragment",
        description=(
            "If a segment's MTU and the tunnel's headers exceed `mtu`: fragment keeps the MTU, and hosts "
            "send the longest frames in two packets; lower gives the segment the MTU that fits; refuse is "
            "an error."
        ),
    )
    port: Port = Field(VXLAN_PORT, description="UDP port of the tunnels.")


def hosts_value(value: Any) -> Any:
    """Converts a list of host names to a mapping; other values stay unchanged."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        if len(set(value)) < len(value):
            raise fail("names a host twice", "name each once")
        return dict.fromkeys(value)
    return value


def or_names(schema: dict[str, Any]) -> None:
    names = {"type": "array", "items": {"type": "string", "pattern": HOST_PATTERN}, "minItems": 1}
    mapping = {
        key: schema.pop(key)
        for key in ("type", "additionalProperties", "propertyNames", "patternProperties")
        if key in schema
    }
    schema["anyOf"] = [mapping, names]
