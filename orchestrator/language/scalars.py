"""Defines the field types of the topology model, with their JSON Schema: quantities, names, addresses, NICs,
moments.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from . import dates, units, uris

NAME_PATTERN = r"^[a-z]([a-z0-9-]*[a-z0-9])?$"
LONGEST_NAME = 40  # leaves room for "vnet-LAB.NODE" and for a host name of 63 characters


class Base(BaseModel):
    """The base of all models: unknown keys are errors, values of other types are not converted, instances
    cannot be changed, and defaults are checked.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, validate_default=True, defer_build=True
    )


def text(value: str) -> Any:
    """Returns a default value that is text in the file's notation, such as "60 s"; the field parses it."""
    return value


def fail(rule: str, remedy: str) -> PydanticCustomError:
    """Returns a validation error with this rule and this remedy."""
    return PydanticCustomError("rule", "{rule}; {remedy}", {"rule": rule, "remedy": remedy})


def reader(parse: Callable[[Any], Any]) -> BeforeValidator:
    """Returns a validator that calls `parse` before the field's own checks; a UnitError becomes a validation
    error with rule and remedy.
    """

    def read(value: Any) -> Any:
        try:
            return parse(value)
        except units.UnitError as error:
            raise fail(error.rule, error.remedy) from None

    return BeforeValidator(read)


def _schema(kind: units.Quantity) -> WithJsonSchema:
    names = "|".join(re.escape(unit) for unit in kind.units)
    pattern = rf"^\s*[0-9.]+\s*({names})\s*$"
    return WithJsonSchema(
        {"type": "string", "title": kind.name, "pattern": pattern, "examples": [kind.example]}
    )


_CPU_SCHEMA = WithJsonSchema(
    {
        "type": "string",
        "title": "CPU",
        "pattern": r"^\s*[0-9.]+\s*(MHz|GHz|cores?)\s*$",
        "examples": ["500 MHz"],
    }
)

Duration = Annotated[int, reader(lambda v: units.whole(units.DURATION, v)), _schema(units.DURATION)]
Span = Annotated[int, reader(lambda v: units.whole(units.SPAN, v)), _schema(units.SPAN)]
Offset = Annotated[
    int,
    reader(lambda v: units.signed(units.SPAN, v)),
    WithJsonSchema({"type": "string", "title": "offset", "examples": ["-3 s"]}),
]
Rate = Annotated[int, reader(lambda v: units.whole(units.RATE, v)), _schema(units.RATE)]
Size = Annotated[int, reader(lambda v: units.whole(units.SIZE, v)), _schema(units.SIZE)]
Share = Annotated[float, reader(lambda v: units.real(units.SHARE, v)), _schema(units.SHARE)]
Frequency = Annotated[float, reader(lambda v: units.real(units.FREQUENCY, v)), _schema(units.FREQUENCY)]
_DATE_SCHEMA = WithJsonSchema({"type": "string", "title": "date", "examples": [dates.EXAMPLE]})
Date = Annotated[int, reader(dates.date_ns), _DATE_SCHEMA]
CpuAmount = Annotated[Any, reader(units.cpu), _CPU_SCHEMA]
Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=LONGEST_NAME)]
Port = Annotated[int, Field(ge=1, le=65535)]
Positive = Annotated[int, Field(ge=1)]


_PREFIXES = {4: (8, 30), 6: (16, 126)}
_EXAMPLES = {4: "10.10.0.0/16", 6: "fd00:10::/64"}
# Unique local addresses, and addresses that the Internet routes (RFC 4193, RFC 4291, 2.4).
_UNICAST6 = (ipaddress.IPv6Network("fc00::/7"), ipaddress.IPv6Network("2000::/3"))


def _network(value: Any) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Parses a subnet, as IPv6 if the text has a colon, else as IPv4; raises ValueError if it is not text, is
    invalid, or has host bits.
    """
    text = value if isinstance(value, str) else ""
    return ipaddress.IPv6Network(text) if ":" in text else ipaddress.IPv4Network(text)


def _subnet(value: Any) -> str:
    """Parses a subnet with a usual prefix length; raises UnitError for other values and for addresses with
    another meaning, such as loopback and multicast.
    """
    try:
        network = _network(value)
    except ValueError as error:
        six = isinstance(value, str) and ":" in value
        remedy = f'write the network itself, for example "{_EXAMPLES[6 if six else 4]}"'
        raise units.UnitError(f"is not an IPv{6 if six else 4} subnet ({error})", remedy) from None
    (least, most), example = _PREFIXES[network.version], _EXAMPLES[network.version]
    if not least <= network.prefixlen <= most:
        rule = f"a subnet needs a prefix from /{least} to /{most}"
        raise units.UnitError(rule, f'write for example "{example}"')
    if _has_other_meaning(network):
        raise units.UnitError("these addresses have another meaning", f'write for example "{example}"')
    return str(network)


def _has_other_meaning(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    """Returns whether the network's addresses are not for hosts: IPv4 loopback, multicast, reserved or
    unspecified addresses; IPv6 addresses other than unique local and global unicast.
    """
    if isinstance(network, ipaddress.IPv6Network):
        return not any(network.subnet_of(known) for known in _UNICAST6)
    return (
        network.is_loopback
        or network.is_multicast
        or network.is_reserved
        or network.network_address.is_unspecified
    )


def _destination(value: Any) -> str:
    """Parses a route's destination: a network or `default`; raises UnitError for other values."""
    if value == "default":
        return "default"
    try:
        return str(_network(value))
    except ValueError as error:
        remedy = 'write a network, for example "10.20.0.0/16" or "fd00:20::/64", or default'
        raise units.UnitError(f"is not a subnet ({error})", remedy) from None


def _address(value: Any) -> str:
    text = value if isinstance(value, str) and "%" not in value else ""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        remedy = 'write for example "10.10.0.1" or "fd00:10::1"'
        raise units.UnitError("is not an IP address", remedy) from None


def _each(value: Any, parse: Callable[[Any], str], noun: str) -> list[str]:
    """Parses one subnet or address, or a list of them; raises UnitError for two of one address family."""
    if not isinstance(value, list):
        return [parse(value)]
    found = [parse(one) for one in value]
    if len({":" in one for one in found}) < len(found):
        rule = f"has two entries of one family; an interface has one {noun} of each"
        raise units.UnitError(rule, "write one of IPv4 and one of IPv6")
    return found


def _address4(value: Any) -> str:
    try:
        return str(ipaddress.IPv4Address(value if isinstance(value, str) else ""))
    except ValueError:
        raise units.UnitError("is not an IPv4 address", 'write for example "10.10.0.1"') from None


def _many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _argv(value: Any) -> Any:
    return ["sh", "-c", value] if isinstance(value, str) else value


_IPV4 = r"^[0-9.]+"
_IP = r"^[0-9a-fA-F.:]+"
_STRINGS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
Subnet = Annotated[str, reader(_subnet), WithJsonSchema({"type": "string", "pattern": _IP + "/[0-9]+$"})]
_SUBNET_SCHEMA = {"type": "string", "pattern": _IP + "/[0-9]+$"}
Subnets = Annotated[
    list[str],
    reader(lambda value: _each(value, _subnet, "subnet")),
    WithJsonSchema({
        "title": "subnets",
        "anyOf": [_SUBNET_SCHEMA, {"type": "array", "items": _SUBNET_SCHEMA, "minItems": 0, "maxItems": 2}],
    }),
]  # fmt: skip
Destination = Annotated[
    str, reader(_destination), WithJsonSchema({"type": "string", "pattern": f"{_IP}(/[0-9]+)?$|^default$"})
]
Address = Annotated[str, reader(_address), WithJsonSchema({"type": "string", "pattern": _IP + "$"})]
_ADDRESS_SCHEMA = {"type": "string", "pattern": _IP + "$"}
Addresses = Annotated[
    list[str],
    reader(lambda value: _each(value, _address, "address")),
    WithJsonSchema({
        "title": "addresses",
        "anyOf": [_ADDRESS_SCHEMA, {"type": "array", "items": _ADDRESS_SCHEMA, "minItems": 0, "maxItems": 2}],
    }),
]  # fmt: skip
Address4 = Annotated[str, reader(_address4), WithJsonSchema({"type": "string", "pattern": _IPV4 + "$"})]
LibvirtUri = Annotated[
    str, reader(uris.check_libvirt), WithJsonSchema({"type": "string", "pattern": r"^qemu(\+[a-z]+)?://"})
]
Targets = Annotated[
    list[str],
    Field(min_length=1),
    BeforeValidator(_many),
    WithJsonSchema({"title": "targets", "anyOf": [{"type": "string"}, _STRINGS]}),
]
SomeOrNone = Annotated[
    list[str],
    BeforeValidator(_many),
    WithJsonSchema({"title": "targets", "anyOf": [{"type": "string"}, {**_STRINGS, "minItems": 0}]}),
]
Argv = Annotated[
    list[str],
    Field(min_length=1),
    BeforeValidator(_argv),
    WithJsonSchema({"title": "command", "anyOf": [{"type": "string"}, _STRINGS]}),
]


_NIC = re.compile(
    r"(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"  # PCI address
    r"|[0-9a-f]{4}:[0-9a-f]{4}"  # vendor:device
    r"|(?!\.\.?(?::|$))[^\s/:]{1,15}(?::vf[0-9]{1,4})?",  # interface name, or one of its virtual functions
    re.IGNORECASE,
)


def _nic(value: Any) -> str:
    """Returns the name of a NIC: PCI address, vendor:device, or interface name; raises UnitError for other
    forms. Does not check whether it exists.
    """
    if isinstance(value, str) and _NIC.fullmatch(value):
        return value
    rule = "is not a NIC: neither PCI address, nor vendor:device, nor interface name"
    raise units.UnitError(rule, 'write for example "0000:01:00.0", "8086:10c9", "enp1s0f0" or "enp1s0f0:vf2"')


def _nics(value: Any) -> dict[str, str]:
    """Parses NICs by segment; a single NIC gets the key "", which stands for the node's first segment."""
    if isinstance(value, dict):
        return {str(segment): _nic(one) for segment, one in value.items()}
    return {"": _nic(value)}


_NIC_SCHEMA = {"type": "string", "title": "NIC", "minLength": 1, "examples": ["0000:01:00.0", "enp1s0f0"]}
Nic = Annotated[str, reader(_nic), WithJsonSchema(_NIC_SCHEMA)]
Nics = Annotated[
    Any,
    reader(_nics),
    WithJsonSchema(
        {
            "title": "NIC",
            "anyOf": [
                _NIC_SCHEMA,
                {"type": "object", "additionalProperties": _NIC_SCHEMA, "minProperties": 1},
            ],
        }
    ),
]


@dataclass(frozen=True, slots=True)
class Moment:
    """A time of the timeline: `at_ns` after the start of `phase`."""

    phase: Literal["ramp", "hold", "drain"]
    at_ns: int


_MOMENT = re.compile(r"\s*(ramp|hold|drain)\s*(?:\+\s*(.+))?")


def _moment(value: Any) -> Moment:
    """Parses a moment: a phase, or a phase + a duration; raises UnitError for other values."""
    if isinstance(value, Moment):
        return value
    match = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        rule = "a moment is a phase (ramp, hold, drain), or a phase + a duration"
        raise units.UnitError(rule, 'write for example "hold + 10 s"')
    offset = units.whole(units.SPAN, match[2]) if match[2] else 0
    return Moment(match[1], offset)  # type: ignore[arg-type]  # the pattern admits only phases


When = Annotated[
    Any,
    reader(_moment),
    WithJsonSchema(
        {
            "type": "string",
            "title": "moment",
            "pattern": r"^\s*(ramp|hold|drain)\s*(\+.*)?$",
            "examples": ["hold + 10 s"],
        }
    ),
]


def _since(value: Any) -> Moment:
    """Parses a moment, or a duration from the start of the ramp."""
    if isinstance(value, str) and value.strip()[:1].isdigit():
        return Moment("ramp", units.whole(units.SPAN, value))
    return _moment(value)


Since = Annotated[
    Any,
    reader(_since),
    WithJsonSchema({"type": "string", "title": "moment", "examples": ["hold + 40 s", "0 s"]}),
]
