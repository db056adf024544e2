"""Defines the keys of nodes, and of groups of equal nodes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from ..language.endpoints import endpoints
from ..language.scalars import (
    Addresses,
    Base,
    CpuAmount,
    Destination,
    Name,
    Nics,
    Size,
    SomeOrNone,
    Span,
    Targets,
    fail,
    reader,
)
from .network import SMALLEST_MTU
from .software import Software


class Route(Base):
    """A route that the file states."""

    to: Destination = Field(description='Subnet, or "default" for all other destinations.')
    via: Targets = Field(
        description="Neighbouring node, or its address; several: each flow takes one of them, by its ports."
    )


class Mounts(Base):
    """Files and directories of the machine that a light node's programs may use."""

    read: list[str] = Field(default_factory=list, description="Absolute paths that the programs may read.")
    write: list[str] = Field(
        default_factory=list, description="Absolute paths that the programs may read and write."
    )

    copied: list[str] = Field(
        default_factory=list,
        alias="copy",
        description="/etc, /var or directories below them, of which each node has a writable copy, dropped "
        "at the end. With /run, the node's own /run, which is writable anyway, has the empty directories "
        "that the machine's packages declare there (tmpfiles.d, RuntimeDirectory).",
    )

    @property
    def paths(self) -> list[str]:
        return [*self.read, *self.write, *self.copied]

    def by_mode(self) -> tuple[tuple[str, list[str]], ...]:
        return ("read", self.read), ("write", self.write), ("copy", self.copied)


def _vlans(value: Any) -> dict[str, int]:
    """Parses VLANs by segment; a single number gets the key "", the node's first segment."""
    if value is None:
        return {}
    given = value if isinstance(value, dict) else {"": value}
    for one in given.values():
        if isinstance(one, bool) or not isinstance(one, int) or not 1 <= one <= 4094:
            raise fail("is no VLAN", "write a number from 1 to 4094, or {SEGMENT: NUMBER}")
    return {str(segment): one for segment, one in given.items()}


_VLAN = {"type": "integer", "title": "VLAN", "minimum": 1, "maximum": 4094}
_VLANS = WithJsonSchema({
    "title": "VLAN", "anyOf": [_VLAN, {"type": "object", "additionalProperties": _VLAN, "minProperties": 1}]
})  # fmt: skip


def _apart(value: Any) -> list[str] | bool:
    """Parses the names of `apart`, or true for the members of a group."""
    if isinstance(value, bool):
        return value or []
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise fail("is neither true nor names", "write `apart: [a, b]`; of a group's members `apart: true`")
    return names


_NAMES: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_APART = WithJsonSchema({"title": "apart", "anyOf": [{"type": "boolean"}, {"type": "string"}, _NAMES]})


_ENDPOINT = {"type": "string"}
Outside = Annotated[
    list[str],
    reader(endpoints),
    WithJsonSchema({
        "title": "outside",
        "anyOf": [
            _ENDPOINT, {"type": "array", "items": _ENDPOINT},
            {"type": "object", "additionalProperties": {"type": "null"}},
        ],
    }),
]  # fmt: skip


class Machine(Base):
    """Keys that nodes and groups share."""

    segment: SomeOrNone = Field(
        default_factory=list,
        description=(
            "Segment of eth0, or a list: one interface for each. Links to other nodes follow, in the order "
            "of `links`; a node with such links needs no segment."
        ),
    )
    forward: bool = Field(
        False, description="Forward packets between the node's subnets: the node is a router."
    )
    routes: list[Route] | None = Field(
        None,
        description="Routes written by hand, in place of those that `routing` computes; [] means no routes.",
    )
    mtu: int | None = Field(
        None,
        ge=SMALLEST_MTU,
        le=65535,
        description=(
            "MTU of the node's interfaces on segments, bytes (the segment's). Longer frames from others "
            "are lost, as on any wire; TCP uses the smaller MTU of both ends."
        ),
    )
    vlan: Annotated[Any, BeforeValidator(_vlans), _VLANS] = Field(
        default_factory=dict,
        description=(
            "light: VLAN, 1 to 4094, of the interface on the first segment, for example eth0.5 on eth0 "
            "(IEEE 802.1Q); all nodes of the subnet have the same. Its frames carry a tag with the "
            "priority that software sets by `pcp`. `{SEGMENT: VLAN}` names another interface."
        ),
    )
    kind: Literal["light", "vm"] = Field(
        "light", description="light: namespaces and a cgroup. vm: a virtual machine, through libvirt."
    )
    image: str | None = Field(
        None,
        min_length=1,
        description=(
            "vm: builtin (the default), builtin-router, builtin-tiny, or a cloud image of your own: its "
            "path (relative to this file), or its name among `vnet images ls`. light: oci:PATH, an archive "
            "of a container image, whose files replace the machine's in this node (docs/containers.md)."
        ),
    )
    memory: Size | None = Field(
        None,
        description=(
            "vm: memory of the machine (by default the need of its built-in image; 512 MiB for an image of "
            "your own)."
        ),
    )
    disk: Size | None = Field(
        None,
        gt=0,
        description=(
            "vm with an image of your own: size of its disk (that of the image), at least the image's; "
            "cloud-init fills it."
        ),
    )
    vcpus: int | None = Field(None, ge=1, le=64, description="vm: virtual CPUs (1).")
    boot_within: Span | None = Field(
        None, description="vm: longest wait from the machine's start to its agent's first answer (120 s)."
    )
    cloud_init: dict[str, Any] | None = Field(
        None, description="vm with an image of your own: cloud-init user-data (users, packages, write_files)."
    )
    software: dict[Name, Software] = Field(
        default_factory=dict, description="Programs, by a name of your own."
    )
    cpu_limit: CpuAmount | None = Field(None, description="CPU limit of the node, MHz or cores.")
    cpu_reserve: CpuAmount | None = Field(
        None, description="CPU guaranteed to the node on a busy machine, MHz or cores."
    )
    own_core: bool = Field(
        False,
        description=(
            "light: reserve a core for the node's programs; the lab's other processes do not run on it. "
            "The machine must have a core to spare (docs/limits.md)."
        ),
    )
    memory_limit: Size | None = Field(
        None, description="Memory limit of all the node's programs together (half of the machine's memory)."
    )
    process_limit: int | None = Field(
        None,
        ge=2,
        le=1 << 22,
        description=(
            "light: limit on simultaneous processes and threads of the node, including its agent (1024)."
        ),
    )
    disk_limit: Size | None = Field(
        None,
        description=(
            "light: limit on the files that the node's programs write, which are in memory and count "
            "there, too (512 MiB, at most a quarter of the machine's memory)."
        ),
    )
    mounts: Mounts = Field(
        default_factory=lambda: Mounts.model_validate({}),
        description=(
            "light: paths of the machine that the node's programs may use, beside those that every user of "
            "the machine may read (docs/security.md)."
        ),
    )
    host: str | None = Field(None, description="Host of the node, one of the file's `hosts`.")
    near: SomeOrNone = Field(
        default_factory=list, description="Nodes that must be on the same host as this one."
    )
    apart: Annotated[Any, BeforeValidator(_apart), _APART] = Field(
        default_factory=list,
        description=(
            "Nodes and groups that must be on other hosts than this one; for a group, true puts each "
            "member on another host."
        ),
    )


def vlans_of(machine: Machine) -> dict[str, int]:
    """Returns the VLAN of each tagged interface of a machine, by segment."""
    first = machine.segment[0] if machine.segment else ""
    return {segment or first: vlan for segment, vlan in machine.vlan.items()}


class Node(Machine):
    """One machine of the lab."""

    address: Addresses = Field(
        default_factory=list,
        description="Fixed address on the first segment, or a list with one of each family.",
    )
    vrf: dict[Name, SomeOrNone] = Field(
        default_factory=dict,
        description="light routers: routing tables of their own by name, each with the segments and links to "
        "other nodes between which it forwards (VRF): `{red: [lan-a, wan-a], blue: [lan-b]}`. Other "
        "interfaces stay in the main table (docs/networks.md#vrf).",
    )
    outside: Outside = Field(
        default_factory=list,
        description="light: endpoints outside the lab that the node may reach by TCP, ADDRESS:PORT each. The "
        "command line must allow each, too (`--allow-outside`); not in virtual time "
        "(docs/networks.md#outside).",
    )
    nic: Nics | None = Field(
        None,
        description="A NIC of the machine in place of eth0: its PCI address, vendor:device (the first "
        "that is free), interface name, or virtual function (NAME:vfN). Moved into a light node, passed "
        "through to a vm. `{SEGMENT: NIC}` where it is not the first segment's interface.",
    )


class Group(Machine):
    """Equal machines, named <group>1, <group>2 ..."""

    count: int = Field(ge=1, le=100_000, description="Number of members.")
