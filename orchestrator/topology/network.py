"""Segments, nodes, groups, links and captures, as the file says them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from ..language.scalars import (
    Address,
    Base,
    CpuAmount,
    Destination,
    Duration,
    Name,
    Nic,
    Nics,
    Positive,
    Rate,
    Share,
    Size,
    SomeOrNone,
    Subnet,
    Targets,
    fail,
    text,
)
from .delays import OwnDelays, OwnTable
from .queues import Queue
from .software import Software
from .traces import OwnTrace


class GilbertElliott(Base):
    """Bursty loss: a good and a bad state, a chance to change between them at every packet."""

    good_to_bad: Share = Field(description="Chance to enter the bad state (netem's p).")
    bad_to_good: Share = Field(description="Chance to leave it (netem's r).")
    loss_in_bad: Share = Field(text("100 %"), description="Loss in the bad state (netem's 1-h).")
    loss_in_good: Share = Field(text("0 %"), description="Loss in the good state (netem's 1-k).")


SMALLEST_MTU = (
    68  # bytes: what every IPv4 module must forward unfragmented (RFC 791), and the least that Linux takes
)
SHAPES = ("uniform", "normal", "pareto", "paretonormal")
_SHAPES = WithJsonSchema({"type": "string", "enum": list(SHAPES)})


def _distribution(value: Any) -> str:
    if isinstance(value, OwnTable) or (isinstance(value, str) and value in SHAPES):
        return value
    raise fail("is not one of the values allowed here", f"write {', '.join(SHAPES)}, or `delays: FILE`")


def _slot_delays(value: Any) -> OwnDelays | None:
    """As `delays.expand` has left it; elsewhere nothing has."""
    if value is None or isinstance(value, OwnDelays):
        return value
    raise fail("is no file of delays", "write its name, for example slots.csv")


class Slot(Base):
    """Packets go in slots, together, and none between them: radio schedulers, power-line cycles."""

    min: Duration | None = Field(None, description="Shortest time from one slot to the next.")
    max: Duration | None = Field(None, description="Longest; each is drawn between them (`min`).")
    delays: Annotated[Any, BeforeValidator(_slot_delays, json_schema_input_type=str | None)] = Field(
        None,
        description="In place of min and max: a file beside this one that these times are drawn from, in the "
        "form of a direction's `delays`.",
    )
    packets: Positive | None = Field(None, le=2**31 - 1, description="Most packets of a slot.")
    bytes: Size | None = Field(None, le=2**31 - 1, description="Most bytes of a slot.")


SHORTEST_BIN_NS, LONGEST_BIN_NS = 10**6, 10 * 10**9


def _bin(value: int) -> int:
    if not SHORTEST_BIN_NS <= value <= LONGEST_BIN_NS or value % SHORTEST_BIN_NS:
        raise fail("is not 1 ms to 10 s in whole milliseconds", 'write for example "100 ms"')
    return value


class TraceFile(Base):
    """A file of what the direction becomes as time passes, and how it is played."""

    file: str = Field(min_length=1, description="CSV or packet-delivery trace, relative to this file.")
    repeat: bool = Field(
        False,
        description="Begin again at the end: a CSV's last line only says when. Else its last state stays.",
    )
    bin: Annotated[Duration, AfterValidator(_bin)] = Field(
        text("100 ms"),
        description="Of a packet-delivery trace: over how long its opportunities of 1,500 bytes are counted.",
    )


def _trace(value: Any) -> OwnTrace | None:
    """As `tracing.expand` has left it; in the timeline nothing has."""
    if value is None or isinstance(value, OwnTrace):
        return value
    raise fail("belongs to a link and begins with the run", "write it at the link, without `impair`")


class Impairment(Base):
    """What one direction of a link does to packets. Delays are one way."""

    profile: str | None = Field(
        None,
        description="A named impairment (`vnet profiles` lists them, with the source of every figure), or "
        "`profiles/NAME.yaml` beside this file; `both` gives each direction its own. What is written "
        "beside it wins.",
    )
    delay: Duration = Field(text("0 s"), description="One way delay.")
    jitter: Duration = Field(
        text("0 s"),
        description="Spread of the delay. Without a `rate` netem lets packets overtake one another.",
    )
    delays: str | None = Field(
        None,
        description="In place of delay, jitter and distribution: a CSV file beside this one, of samples (a "
        "column `delay_ms`) or quantiles (`quantile,delay_ms`).",
    )
    distribution: Annotated[Any, BeforeValidator(_distribution), _SHAPES] = Field(
        "uniform",
        description="Of the jitter: uniform is delay +- jitter; for the others jitter is the scale.",
    )
    delay_correlation: Share = Field(text("0 %"), description="Of one packet's delay with the one before.")
    loss: Share = Field(text("0 %"), description="Packets lost, independent unless correlated.")
    loss_correlation: Share = Field(text("0 %"), description="Of one packet's loss with the one before.")
    gilbert_elliott: GilbertElliott | None = Field(None, description="Bursty loss instead of `loss`.")
    duplicate: Share = Field(text("0 %"), description="Packets sent twice.")
    duplicate_correlation: Share = Field(text("0 %"), description="As for loss.")
    corrupt: Share = Field(text("0 %"), description="Packets with one bit flipped.")
    corrupt_correlation: Share = Field(text("0 %"), description="As for loss.")
    reorder: Share = Field(
        text("0 %"), description="Packets sent at once, past the delayed ones; needs a delay."
    )
    reorder_correlation: Share = Field(text("0 %"), description="As for loss.")
    rate: Rate | None = Field(
        None, description="Bandwidth, Ethernet frames; without it the direction is not shaped."
    )
    limit: Positive | None = Field(
        None, le=2**32 - 1, description="Queue limit in packets; by default sized from rate x delay."
    )
    slot: Slot | None = Field(None, description="Packets go in slots only, after their delay (netem's slot).")
    trace: Annotated[Any, BeforeValidator(_trace, json_schema_input_type=TraceFile | str | None)] = Field(
        None,
        description="A file beside this one that says what rate, delay and loss become as time passes: a CSV "
        "(columns `time_s` and any of `rate_mbps`, `delay_ms`, `loss_percent`) or a packet-delivery trace. "
        "`{file: FILE, repeat: true, bin: 100 ms}`, or the file alone.",
    )
    queue: Queue | None = Field(
        None, description="What happens to packets that `rate` cannot send at once; first in, first out."
    )


Duplex = Literal["full", "half"]


class Segment(Base):
    """One broadcast domain: a bridge. Segments that a link joins are one IP subnet."""

    subnet: Subnet | None = Field(
        None,
        description="Its subnet, of IPv4 or IPv6; may be left out where a link joins the segment to one "
        "that has it.",
    )
    mtu: int = Field(
        1500, ge=SMALLEST_MTU, le=65535, description="Of the bridge and of every interface on it, bytes."
    )
    ipv6: bool = Field(
        False,
        description="Let nodes use IPv6 beside an IPv4 subnet (link-local addresses, router solicitation, "
        "MLD); with an IPv6 subnet they do.",
    )
    stp: bool = Field(
        False,
        description="Spanning tree (IEEE 802.1D, its shortest timers): links of segments may form loops. "
        "All segments that links join have it, or none. The first in the file is its root.",
    )
    duplex: Duplex = Field(
        "full",
        description="half: one medium for all its members. Every frame, whoever sends it and however many "
        "receive it, passes one transmitter once: `medium`.",
    )
    medium: Impairment | None = Field(
        None, description="half duplex: what the one transmitter does to frames; needs a `rate`."
    )


class Route(Base):
    """A way written by hand."""

    to: Destination = Field(description='Subnet, or "default": all that nothing else leads to.')
    via: Targets = Field(
        description="Neighbouring node, or its address; several: each flow takes one of them, by its ports."
    )


def _vlans(value: Any) -> dict[str, int]:
    """By segment; "" stands for the node's first."""
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
    """Names, or true of a group's members."""
    if isinstance(value, bool):
        return value or []
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise fail("is neither true nor names", "write `apart: [a, b]`; of a group's members `apart: true`")
    return names


_NAMES: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_APART = WithJsonSchema({"title": "apart", "anyOf": [{"type": "boolean"}, {"type": "string"}, _NAMES]})


class Machine(Base):
    """What a node and each member of a group have in common."""

    segment: SomeOrNone = Field(
        default_factory=list,
        description="Segment of eth0, or a list: one interface for each. Links to other nodes follow, in the "
        "order of `links`; a node that has some needs no segment.",
    )
    forward: bool = Field(
        False, description="Pass on packets that are not its own: a router between its subnets."
    )
    routes: list[Route] | None = Field(
        None, description="Its routes, by hand, in place of those that `routing` computes; [] is none."
    )
    mtu: int | None = Field(
        None,
        ge=SMALLEST_MTU,
        le=65535,
        description="Of its interfaces on segments, bytes (the segment's). Longer frames that others send it "
        "there are lost, as on any wire; TCP agrees on the smaller one.",
    )
    vlan: Annotated[Any, BeforeValidator(_vlans), _VLANS] = Field(
        default_factory=dict,
        description="light: its first segment's interface is a tagged one (IEEE 802.1Q) of this VLAN, 1 to "
        "4094, as those of all nodes of the subnet: eth0.5 on eth0, whose frames carry a tag, and in it the "
        "priority that software asks for with `pcp`. `{SEGMENT: VLAN}` where it is another interface.",
    )
    kind: Literal["light", "vm"] = Field(
        "light", description="light: namespaces and a cgroup. vm: a virtual machine, through libvirt."
    )
    image: str | None = Field(
        None,
        min_length=1,
        description="vm: builtin (the default), builtin-router, builtin-tiny, or a cloud image of your own: "
        "its path (relative to this file), or its name among `vnet images ls`. light: oci:PATH, an archive "
        "of a container image, whose files it has in place of the machine's (docs/containers.md).",
    )
    memory: Size | None = Field(
        None, description="vm: its memory (what its built-in image needs; 512 MiB for an image of your own)."
    )
    vcpus: int | None = Field(None, ge=1, le=64, description="vm: virtual CPUs (1).")
    boot_within: Duration | None = Field(
        None, description="vm: longest wait from its start to its agent's first answer (120 s)."
    )
    cloud_init: dict[str, Any] | None = Field(
        None, description="vm with an image of your own: cloud-init user-data (users, packages, write_files)."
    )
    software: dict[Name, Software] = Field(
        default_factory=dict, description="Programs, by a name of your own."
    )
    cpu_limit: CpuAmount | None = Field(None, description="Most CPU it may use, MHz or cores.")
    cpu_reserve: CpuAmount | None = Field(
        None, description="CPU it gets when the machine is busy, MHz or cores."
    )
    own_core: bool = Field(
        False,
        description="light: its programs run on a core to themselves, off which the lab keeps all "
        "others, where the machine has one to give (docs/limits.md).",
    )
    memory_limit: Size | None = Field(
        None, description="Most memory its programs may use together (half of the machine's)."
    )
    process_limit: int | None = Field(
        None,
        ge=2,
        le=1 << 22,
        description="light: most processes and threads it may have at once, its agent counted (1024).",
    )
    disk_limit: Size | None = Field(
        None,
        description="light: most that its programs may write in all, kept in memory and counted there too "
        "(512 MiB, at most a quarter of the machine's memory).",
    )
    sees: list[str] = Field(
        default_factory=list,
        description="light: absolute paths of the machine that its programs may read, beside what every user "
        "of the machine may (docs/security.md).",
    )
    writes: list[str] = Field(
        default_factory=list, description="light: absolute paths of the machine that they may write."
    )
    host: str | None = Field(None, description="Which of the file's `hosts` it stands on.")
    near: SomeOrNone = Field(
        default_factory=list, description="Nodes with which it stands on the same one of the `hosts`."
    )
    apart: Annotated[Any, BeforeValidator(_apart), _APART] = Field(
        default_factory=list,
        description="Nodes and groups with which it shares none of the `hosts`; of a group, true: its "
        "members share none with each other.",
    )


def vlans_of(machine: Machine) -> dict[str, int]:
    """By segment, of a machine's tagged interfaces."""
    first = machine.segment[0] if machine.segment else ""
    return {segment or first: vlan for segment, vlan in machine.vlan.items()}


class Node(Machine):
    """One machine of the lab."""

    address: Address | None = Field(None, description="Fixed address on the first segment.")
    nic: Nics | None = Field(
        None,
        description="A NIC of the machine in place of eth0: its PCI address, vendor:device (the first "
        "that is free), interface name, or virtual function (NAME:vfN). Moved into a light node, passed "
        "through to a vm. `{SEGMENT: NIC}` where it is not the first segment's interface.",
    )


class Group(Machine):
    """Equal machines, named <group>1, <group>2 ..."""

    count: int = Field(ge=1, le=100_000, description="How many.")


class LinkNics(Base):
    """Two NICs of the machine, cabled to each other."""

    a: Nic = Field(description="On the side of the link's first end; of a node it becomes the interface.")
    b: Nic = Field(description="On the side of the second: a port of that segment's bridge.")


NO_NICS = "none"


def _ports(value: Any) -> Any:
    """The pair as a parameter gives it: "none", or "A B"."""
    if not isinstance(value, str):
        return value
    words = value.split()
    if words == [NO_NICS]:
        return None
    if len(words) != 2:
        raise fail("names two NICs, or none", 'write {a: NIC, b: NIC}, "NIC NIC" in one text, or "none"')
    return dict(zip("ab", words, strict=True))


def _or_text(schema: dict[str, Any]) -> None:
    schema["anyOf"].append({"type": "string", "pattern": r"^\s*(none|\S+\s+\S+)\s*$"})


class Link(Base):
    """Joins two segments, a node (each member of a group) and its segment, or two nodes; forward is first to
    second.
    """

    between: Annotated[list[Name], Field(min_length=2, max_length=2)] = Field(
        description="[segment, segment], [node, segment], [group, segment], or [node, node]: a wire from one "
        "to the other, with a subnet of its own."
    )
    forward: Impairment | None = Field(None, description="From the first to the second.")
    reverse: Impairment | None = Field(None, description="From the second to the first.")
    both: Impairment | None = Field(None, description="The same, independently, in each direction.")
    duplex: Duplex = Field(
        "full",
        description="half: both directions share one transmitter, hence one rate and one queue; of a group's "
        "links each has a transmitter of its own.",
    )
    nics: Annotated[LinkNics | None, BeforeValidator(_ports)] = Field(
        None,
        description="The link runs through two ports of this machine that a cable joins. In one text, for "
        'a parameter: "A B", or "none" for a plain link (of a node that nothing else is asked of: no link).',
        json_schema_extra=_or_text,
    )
    subnet: Subnet | None = Field(
        None,
        description="[node, node]: its subnet; without one it gets a /30 of 10.255.0.0/16 or below, or of "
        "IPv6 a /126 of fdff::/64 or below (`routing: {family: ...}`).",
    )
    cost: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="[node, node]: of the way over it, for `routing: {by: cost}` and routing daemons (1).",
    )
    mtu: int | None = Field(
        None, ge=SMALLEST_MTU, le=65535, description="[node, node]: of both its interfaces, bytes (1500)."
    )


class Capture(Base):
    """A capture point: tcpdump on one interface of the lab."""

    at: str = Field(
        pattern=r"^(node|segment|link) [a-z][a-z0-9-]*$",
        description='"node NAME" (its port on the first segment), "segment NAME" (the bridge), '
        '"link NAME" (its first end).',
    )
    snaplen: int = Field(1600, ge=60, le=262144, description="Bytes kept of each packet.")
    filter: str = Field("", pattern=r"^[^\n\r]*$", description="pcap filter expression.")
    keep: bool = Field(True, description="Keep the pcap after it has been reduced to a table.")
