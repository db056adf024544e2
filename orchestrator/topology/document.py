"""Defines the typed model of a whole topology file, from which the JSON Schema and the reference page are
made.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ..language.scalars import (
    Argv,
    Base,
    CpuAmount,
    Date,
    Duration,
    LibvirtUri,
    Name,
    Offset,
    Positive,
    Span,
    Targets,
    When,
    text,
)
from .blocks import Order
from .expect import Line, or_lines
from .hosts import Host, HostName, Underlay, hosts_value, or_names
from .hunt import HuntBlock
from .impairments import Impairment
from .network import Capture, Link, Segment
from .nodes import Group, Node
from .proof import Proof
from .search import Search
from .until import Until

Level = Annotated[Any, Field(description="A value of the parameter, as with -p.")]


class Reference(Base):
    """Published results to which the run's results are compared."""

    name: str = Field(pattern=r"^[a-z0-9_]+$", description="Name of the reference, for example vnet_2014.")
    scenario: str = Field(pattern=r"^[a-z0-9_]+$", description="Scenario of the reference.")


class Parameter(Base):
    """A value that replaces `${name}` anywhere in the file; `-p name=value` changes it."""

    type: Literal["int", "number", "text", "bool", "duration", "rate", "size", "share", "frequency"] = Field(
        description="Quantities are written with their unit."
    )
    default: str | int | float | bool | None = Field(None, description="Without one, -p must give the value.")
    min: str | int | float | None = Field(None, description="Smallest value allowed.")
    max: str | int | float | None = Field(None, description="Largest value allowed.")
    choices: list[str | int | float | bool] | None = Field(
        None, min_length=1, description="The only values allowed."
    )
    help: str = Field("", description="Description for human readers.")


class Event(Base):
    """One timeline event: exactly one action at one time, optionally `for` a duration."""

    at: When = Field(
        description='"hold + 10 s": 10 s after the start of the hold; phases are ramp, hold and drain.'
    )
    label: str = Field("", description="Text for the plots; by default made from the action.")
    impair: Targets | None = Field(None, description="Links whose impairment is replaced.")
    link_down: Targets | None = Field(None, alias="link-down", description="Links that are cut.")
    link_up: Targets | None = Field(None, alias="link-up", description="Links that are mended.")
    flap: Targets | None = Field(None, description="Links that go down and up again, `times` times.")
    disconnect: Targets | None = Field(
        None,
        description="Links that are cut at random, each by itself, `for` a while: exponential times of mean "
        "`up` between cuts of mean `down`, in whole milliseconds, drawn by the run's seed. At the end all "
        "are mended.",
    )
    partition: Targets | None = Field(
        None,
        description="Nodes, groups or segments that are cut off: all their links go down, `for` a while.",
    )
    split: list[Targets] | None = Field(
        None,
        min_length=2,
        description=(
            "Sets of nodes, groups or segments, of which each reaches only itself, `for` a while: the "
            "links between them go down. Nodes in no set belong to the set that is fewest links away."
        ),
    )
    start: Targets | None = Field(None, description="Nodes or groups, or their `software`, to start.")
    stop: Targets | None = Field(
        None,
        description=(
            "Nodes, groups or their `software`, to end by their stop signal; with `for`, started again after "
            "it."
        ),
    )
    kill: Targets | None = Field(
        None,
        description=(
            "Nodes, groups or their `software`, to end by SIGKILL; with `for`, started again after it."
        ),
    )
    restart: Targets | None = Field(None, description="Nodes, groups or their `software`, to stop and start.")
    freeze: Targets | None = Field(
        None,
        description="Nodes or groups whose processes, or those of `software`, are stopped by SIGSTOP, `for` "
        "a while; then SIGCONT.",
    )
    disk_full: Targets | None = Field(
        None,
        alias="disk-full",
        description=(
            "Light nodes or groups whose disks are full `for` a while; their programs can reuse only the "
            "space that they free. Paths of `mounts` stay writable."
        ),
    )
    schedule: Targets | None = Field(
        None,
        description="Nodes or groups whose programs run in a perturbed order, `for` a while or to the end of "
        "the run: their threads are set aside at random moments, for `stall` at most, or go behind all that "
        "are ready, and their timers expire up to `stall` late. The run's seed draws all of it. Only in "
        "virtual time.",
    )
    clock: Targets | None = Field(
        None,
        description="Nodes or groups whose programs have a clock (CLOCK_REALTIME) that is `offset` from the "
        "lab's, `for` a while or to the end of the run. Roles of the agent keep the lab's. Only in virtual "
        "time.",
    )
    run: Argv | None = Field(
        None,
        description="A command, run on the nodes of `on`; text is given to `sh -c`. A failure is a warning.",
    )
    limit: Targets | None = Field(
        None,
        description="Nodes or groups whose `cpu_limit` changes, to the run's end or the next such event.",
    )
    both: Impairment | None = Field(None, description="impair: the new impairment of both directions.")
    forward: Impairment | None = Field(
        None, description="impair: the new impairment of the forward direction."
    )
    reverse: Impairment | None = Field(
        None, description="impair: the new impairment of the reverse direction."
    )
    duration: Span | None = Field(
        None, alias="for", description="Duration of the event, which is then undone."
    )
    down: Span | None = Field(None, description="flap: duration of each cut; disconnect: the mean duration.")
    up: Span | None = Field(None, description="flap: time between cuts; disconnect: the mean time.")
    times: Positive | None = Field(None, le=1000, description="flap: number of cuts (1).")
    stall: Span | None = Field(
        None, description="schedule: the longest time for which a thread is set aside (10 ms)."
    )
    offset: Offset | None = Field(
        None,
        description="clock: the time that is added to the lab's clock; below zero, the node's is behind.",
    )
    software: Name | None = Field(
        None,
        description=(
            "start, stop, kill, restart, freeze: one program (no role of the agent); without it all "
            "programs, and except for freeze the node's links go down or up. Roles of the agent keep "
            "running, cut off."
        ),
    )
    cpu_limit: CpuAmount | None = Field(None, description="limit: the new CPU limit, MHz or cores.")
    on: Targets | None = Field(
        None, description="run: nodes or groups; patterns such as client* and client[1-20] too."
    )


class Run(Base):
    """The phases of a run: ramp (clients connect one after another), hold and drain."""

    connect_interval: Duration | None = Field(
        None, description="Time from one client's connect to the next (200 ms)."
    )
    ramp: Span | None = Field(None, description="The whole ramp instead: the interval is ramp / clients.")
    hold: Span = Field(text("60 s"), description="Time from the last connect to the end of the load.")
    drain: Span = Field(text("30 s"), description="Longest wait for messages in flight after the hold.")
    on_node_failure: Literal["abort", "continue"] = Field(
        "abort",
        description=(
            "Effect of a failed node or a crashed program of any role: the run ends with exit status 1 "
            "(abort), or continues and is suspect (continue). *Programs that end* defines a crash."
        ),
    )
    trace_late: Duration = Field(
        text("10 ms"), description="A trace's change that comes later than this makes the run suspect."
    )
    clock: Date | None = Field(
        None,
        description=(
            "The date, or the date and time in UTC, at which the lab's clock starts in virtual time "
            "(2026-01-01), for example a day on which certificates are valid. In real time the lab uses "
            "the machine's clock."
        ),
    )


class Routing(Base):
    """The computation of routes for nodes that state no routes."""

    by: Literal["delay", "hops", "cost", "none"] = Field(
        "delay",
        description=(
            "Measure of the shortest path: delay (of a full frame, one way), hops, or the sum of the "
            "links' `cost`. none: no routes, for routing daemons."
        ),
    )
    ecmp: bool = Field(False, description="Use all equally short paths; each flow takes one, by its ports.")
    family: Literal["ipv4", "ipv6", "both"] | None = Field(
        None,
        description=(
            "Family of the subnets of links between nodes; by default both if a segment or link has subnets "
            "of both, else ipv6 if all subnets in the file are IPv6, else ipv4."
        ),
    )


def _routing(value: Any) -> Any:
    return {"by": value} if isinstance(value, str) else value


def _or_word(schema: dict[str, Any]) -> None:
    schema["anyOf"].append({"type": "string", "enum": ["delay", "hops", "cost", "none"]})


class Axis(Base):
    """One parameter of a design: a range, or levels of which each point has one."""

    low: Level | None = Field(None, alias="from", description="Least value; its unit is that of all points.")
    high: Level | None = Field(None, alias="to", description="Largest value.")
    scale: Literal["linear", "log"] = Field(
        "linear", description="log: as many points in each decade of the range."
    )
    steps: int = Field(
        2,
        ge=2,
        le=100,
        description="full, one-at-a-time: values of the range, its ends included, evenly spaced by `scale`.",
    )
    levels: list[Level] | None = Field(
        None,
        min_length=2,
        description="Values in place of a range; a sampled design has equally many points of each.",
    )


class Design(Base):
    """Points of several parameters: sampled from ranges with a seed (scipy.stats.qmc), or combined."""

    method: Literal["latin-hypercube", "halton", "full", "one-at-a-time", "fractional"] = Field(
        "latin-hypercube",
        description=(
            "latin-hypercube: each axis in as many strata as there are points. halton: a sequence, whose "
            "first points stay the same when `points` grows. full: every combination of values. "
            "one-at-a-time: the first value of every axis, then each other value of one axis alone. "
            "fractional: of two values an axis, the part of the combinations that still separates the "
            "axes' effects."
        ),
    )
    points: Positive | None = Field(
        None,
        le=10_000,
        description=(
            "Number of points. fractional: a power of two; by default the least one at which no axis is "
            "confounded with an interaction of two others. full and one-at-a-time: determined by the axes."
        ),
    )
    skip: int = Field(
        0, ge=0, le=1_000_000, description="halton: number of the sequence's first points to skip."
    )
    seed: int = Field(1, ge=0, le=2**63 - 1, description="Seed of the sampled points, not of the runs.")
    axes: dict[str, Axis] = Field(min_length=1, description="Range or levels, by parameter.")


class CampaignBlock(Base):
    """Factors x levels x repetitions; a repetition has the same seed in every cell (for paired tests)."""

    topologies: list[str] | None = Field(
        None, min_length=1, description="Topology files, beside this one; without it, this file itself."
    )
    factors: dict[str, Annotated[list[Level], Field(min_length=1)]] = Field(
        default_factory=dict, description="Levels by parameter."
    )
    points: list[dict[str, Level]] | None = Field(
        None,
        min_length=1,
        description=(
            "Settings of several parameters at once, each combined with every topology and level; a "
            "setting with `topology: FILE` only with that file."
        ),
    )
    design: Design | None = Field(None, description="Points sampled from ranges, in place of a list.")
    search: dict[str, Search] | None = Field(
        None,
        min_length=1,
        description=(
            "By parameter: the range in which its largest good value is searched, with as many runs of "
            "each combination of topology and levels as needed."
        ),
    )
    parameters: dict[str, Level] = Field(
        default_factory=dict, description="Value in every cell, by parameter."
    )
    repetitions: Positive = Field(1, le=1000, description="Runs of each cell.")
    until: Until | None = Field(
        None,
        description=(
            "In place of `repetitions`: each setting is repeated until the interval of a metric's mean is "
            "narrow enough."
        ),
    )
    order: Order = Field(
        "listed",
        description=(
            "Order of the runs of one repetition, which is a block with a run of every setting. listed: as "
            "in this file, the last factor fastest; random: in each block another order, which the seed "
            "fixes, so that a change of the machine during the campaign favours no setting."
        ),
    )
    rerun_suspect: int = Field(
        0,
        ge=0,
        le=10,
        description=(
            "Limit on further runs of a cell whose run is suspect because of a disturbance of the machine. "
            "All runs are kept; the last one counts, which is the first undisturbed one if there is one."
        ),
    )
    boot: Literal["once", "each"] = Field(
        "once",
        description=(
            "Virtual machines: once: cells resume from a snapshot of the booted machines if that is "
            "faster; each: every cell boots."
        ),
    )


class File(Base):
    """A topology file."""

    name: Name = Field(description="Name of the experiment, and of its lab unless another is given.")
    description: str = Field("", description="Description for human readers.")
    reference: Reference | None = Field(None, description="Published results to compare with.")
    seed: int = Field(1, ge=0, le=2**63 - 1, description="Fixes every random draw of the workload.")
    parameters: dict[str, Parameter] = Field(default_factory=dict, description="Values used as ${name}.")
    libvirt: LibvirtUri = Field(
        "qemu:///embed",
        description=(
            "URI of the libvirt driver that runs the nodes of kind vm: qemu:///embed needs no daemon, "
            "qemu:///system is a daemon; with qemu+ssh://USER@HOST/system the whole lab runs on that "
            "machine."
        ),
    )
    hosts: Annotated[dict[HostName, Host], BeforeValidator(hosts_value)] = Field(
        default_factory=dict,
        description=(
            "Machines that carry this one lab together (docs/placement.md): names of the inventory, or "
            "descriptions by name. Without them the whole lab is on one machine."
        ),
        json_schema_extra=or_names,
    )
    underlay: Underlay = Field(
        default_factory=lambda: Underlay.model_validate({}), description="The network between the hosts."
    )
    segments: dict[Name, Segment] = Field(default_factory=dict, description="Broadcast domains, by name.")
    nodes: dict[Name, Node] = Field(default_factory=dict, description="Single machines, by name.")
    groups: dict[Name, Group] = Field(default_factory=dict, description="Equal machines, by name.")
    links: dict[Name, Link] = Field(default_factory=dict, description="Links with impairments, by name.")
    routing: Annotated[Routing | None, BeforeValidator(_routing)] = Field(
        None,
        description="How the routes of forwarding nodes are computed (by delay); one word alone is `by`.",
        json_schema_extra=_or_word,
    )
    captures: dict[Name, Capture] = Field(default_factory=dict, description="Capture points, by name.")
    timeline: list[Event] = Field(default_factory=list, description="Events, in any order.")
    run: Run = Field(default_factory=lambda: Run.model_validate({}), description="Length of the phases.")
    proof: Proof = Field(
        default_factory=lambda: Proof.model_validate({}),
        description="Tolerances and length of the links' proof.",
    )
    expect: list[Line] = Field(
        default_factory=list,
        description=(
            "Conditions on the run, judged after it: exit status 7 if one fails, 8 if the run does not "
            "decide one. Each is a mapping, or one line: `latency_p99[class=control] < 500 ms`."
        ),
        json_schema_extra=or_lines,
    )
    campaign: CampaignBlock | None = Field(None, description="The matrix that `vnet campaign run` runs.")
    hunt: HuntBlock | None = Field(
        None, description="Faults and parameters among which `vnet hunt` looks for a broken expectation."
    )


class CampaignFile(Base):
    """A file that holds a campaign over other topology files."""

    name: Name = Field(description="Name of the campaign.")
    description: str = Field("", description="Description for human readers.")
    seed: int = Field(
        1, ge=0, le=2**62 - 1, description="Seed of the first repetition; repetition n has seed + n - 1."
    )
    campaign: CampaignBlock = Field(description="The matrix.")
