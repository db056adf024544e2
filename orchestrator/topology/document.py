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
    """Published results to stand beside ours."""

    name: str = Field(pattern=r"^[a-z0-9_]+$", description="Name of the reference, for example vnet_2014.")
    scenario: str = Field(pattern=r"^[a-z0-9_]+$", description="Which scenario of it.")


class Parameter(Base):
    """A value that `${name}` stands for anywhere in the file and that `-p name=value` changes."""

    type: Literal["int", "number", "text", "bool", "duration", "rate", "size", "share", "frequency"] = Field(
        description="Quantities are written with their unit."
    )
    default: str | int | float | bool | None = Field(None, description="Without one, -p must give the value.")
    min: str | int | float | None = Field(None, description="Smallest value allowed.")
    max: str | int | float | None = Field(None, description="Largest value allowed.")
    choices: list[str | int | float | bool] | None = Field(
        None, min_length=1, description="The only values allowed."
    )
    help: str = Field("", description="What it is, for people.")


class Event(Base):
    """One timeline event: exactly one action, at a moment, perhaps `for` a while."""

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
        description="Sets of nodes, groups or segments, of which each reaches only itself, `for` a while: "
        "the links between them go down. What no set names stays with the set that is fewest links away.",
    )
    start: Targets | None = Field(None, description="Nodes or groups, or their `software`, to start.")
    stop: Targets | None = Field(None, description="Ended politely; with `for`, started again after it.")
    kill: Targets | None = Field(None, description="Ended by SIGKILL; with `for`, started again after it.")
    restart: Targets | None = Field(None, description="Stopped and started.")
    freeze: Targets | None = Field(
        None,
        description="Nodes or groups whose processes, or those of `software`, are stopped by SIGSTOP, `for` "
        "a while; then SIGCONT.",
    )
    disk_full: Targets | None = Field(
        None,
        alias="disk-full",
        description="Light nodes or groups that have no free space to write, `for` a while; what their "
        "programs delete meanwhile they may write again. Not what `mounts` shares.",
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
    forward: Impairment | None = Field(None, description="impair: of the forward direction.")
    reverse: Impairment | None = Field(None, description="impair: of the reverse direction.")
    duration: Span | None = Field(None, alias="for", description="After it, the event is undone.")
    down: Span | None = Field(None, description="flap: how long down each time; disconnect: the mean.")
    up: Span | None = Field(None, description="flap: how long up between; disconnect: the mean.")
    times: Positive | None = Field(None, le=1000, description="flap: how often (1).")
    software: Name | None = Field(
        None,
        description="start, stop, kill, restart, freeze: one program (no role of the agent); without it, "
        "all, and the node's links go down or up (not with freeze). Roles of the agent run on, cut off.",
    )
    cpu_limit: CpuAmount | None = Field(None, description="limit: most CPU from then on, MHz or cores.")
    on: Targets | None = Field(
        None, description="run: nodes or groups; patterns such as client* and client[1-20] too."
    )


class Run(Base):
    """The phases of a run: ramp (clients connect one after another), hold, drain."""

    connect_interval: Duration | None = Field(
        None, description="From one client's connect to the next (200 ms)."
    )
    ramp: Span | None = Field(None, description="The whole ramp instead: the interval is ramp / clients.")
    hold: Span = Field(text("60 s"), description="From the last connect to the end of the load.")
    drain: Span = Field(text("30 s"), description="Longest wait for messages in flight after the hold.")
    on_node_failure: Literal["abort", "continue"] = Field(
        "abort",
        description="When a node fails, or a program of any role crashes: the run ends with exit status 1 "
        "(abort), or goes on and is suspect (continue). *Programs that end* says what a crash is.",
    )
    trace_late: Duration = Field(
        text("10 ms"), description="A trace's change that comes later than this makes the run suspect."
    )
    clock: Date | None = Field(
        None,
        description="The date, or the date and time in UTC, at which the lab's clock starts in virtual time "
        "(2026-01-01), for example a day on which certificates are valid. In real time the machine's clock "
        "counts.",
    )


class Routing(Base):
    """How the routes of nodes are found that have none written by hand."""

    by: Literal["delay", "hops", "cost", "none"] = Field(
        "delay",
        description="What the shortest way is least of: delay (of a full frame, one way), hops, or the "
        "sum of the links' `cost`. none: no routes, for routing daemons.",
    )
    ecmp: bool = Field(
        False, description="Keep all ways that are equally short; each flow takes one, by its ports."
    )
    family: Literal["ipv4", "ipv6"] | None = Field(
        None,
        description="Of the subnets that links between nodes get; by default ipv6 where all subnets in the "
        "file are.",
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
        description="Values in place of a range; a sampled design has as many points of each.",
    )


class Design(Base):
    """Points of several parameters: sampled from ranges by a seed (scipy.stats.qmc), or combined."""

    method: Literal["latin-hypercube", "halton", "full", "one-at-a-time", "fractional"] = Field(
        "latin-hypercube",
        description="latin-hypercube: each axis in as many strata as there are points. halton: a sequence, "
        "whose first points stay the same when more are asked for. full: every combination of values. "
        "one-at-a-time: the first value of every axis, then each other value of one axis alone. fractional: "
        "of two values an axis, the part of the combinations that still tells the axes apart.",
    )
    points: Positive | None = Field(
        None,
        le=10_000,
        description="How many. fractional: a power of two; by default the least one at which no axis is "
        "confounded with an interaction of two others. full and one-at-a-time: as many as their axes give.",
    )
    skip: int = Field(0, ge=0, le=1_000_000, description="halton: of the sequence's first points.")
    seed: int = Field(1, ge=0, le=2**63 - 1, description="Of sampled points; not of the runs.")
    axes: dict[str, Axis] = Field(min_length=1, description="Parameter: its range or levels.")


class CampaignBlock(Base):
    """Factors x levels x repetitions; a repetition has the same seed in every cell, so that cells pair."""

    topologies: list[str] | None = Field(
        None, min_length=1, description="Topology files, beside this one; without it, this file itself."
    )
    factors: dict[str, Annotated[list[Level], Field(min_length=1)]] = Field(
        default_factory=dict, description="Parameter: its levels."
    )
    points: list[dict[str, Level]] | None = Field(
        None,
        min_length=1,
        description="Settings of several parameters at once, each with every topology and level; with "
        "`topology: FILE` in it, with that one alone.",
    )
    design: Design | None = Field(None, description="The same, sampled from ranges in place of a list.")
    search: dict[str, Search] | None = Field(
        None,
        min_length=1,
        description="Parameter: the range in which its largest good value is looked for, by as many runs of "
        "each combination of topology and levels as that takes.",
    )
    parameters: dict[str, Level] = Field(
        default_factory=dict, description="Parameter: its value in every cell."
    )
    repetitions: Positive = Field(1, le=1000, description="Runs of each cell.")
    until: Until | None = Field(
        None,
        description="In place of `repetitions`: each setting is repeated until the mean of a metric is known "
        "well, and not more often.",
    )
    order: Order = Field(
        "listed",
        description="Of the runs of one repetition, which is a block with a run of every setting. listed: as "
        "in this file, the last factor fastest; random: in each block another order, which the seed fixes, "
        "so that a change of the machine during the campaign favours no setting.",
    )
    rerun_suspect: int = Field(
        0,
        ge=0,
        le=10,
        description="A cell whose run is suspect because of what the machine did to it is run again, at most "
        "so many times. All runs are kept; the last one counts, which is the first undisturbed one if there "
        "is one.",
    )
    boot: Literal["once", "each"] = Field(
        "once",
        description="Virtual machines: once: cells go on from a snapshot of the booted machines where that "
        "is faster; each: every cell boots.",
    )


class File(Base):
    """A topology file."""

    name: Name = Field(description="Name of the experiment, and of its lab unless another is given.")
    description: str = Field("", description="For people.")
    reference: Reference | None = Field(None, description="Published results to compare with.")
    seed: int = Field(1, ge=0, le=2**63 - 1, description="Fixes every random draw of the workload.")
    parameters: dict[str, Parameter] = Field(default_factory=dict, description="Values used as ${name}.")
    libvirt: LibvirtUri = Field(
        "qemu:///embed",
        description="Who runs the nodes of kind vm: qemu:///embed needs no daemon; or a daemon, as "
        "qemu:///system; with qemu+ssh://USER@HOST/system the whole lab runs on that machine.",
    )
    hosts: Annotated[dict[HostName, Host], BeforeValidator(hosts_value)] = Field(
        default_factory=dict,
        description="Machines that carry this one lab together (docs/placement.md): names of the "
        "inventory, or by name what they are. Without them the lab is whole on one machine.",
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
        description="Where nodes forward: how routes are found (by delay); one word alone is `by`.",
        json_schema_extra=_or_word,
    )
    captures: dict[Name, Capture] = Field(default_factory=dict, description="Capture points, by name.")
    timeline: list[Event] = Field(default_factory=list, description="Events, in any order.")
    run: Run = Field(default_factory=lambda: Run.model_validate({}), description="Length of the phases.")
    proof: Proof = Field(
        default_factory=lambda: Proof.model_validate({}), description="How tight the links' proof is."
    )
    expect: list[Line] = Field(
        default_factory=list,
        description="What the run has to meet, judged after it: exit status 7 if one fails, 8 if one cannot "
        "be told. Each is a mapping, or one line: `latency_p99[class=control] < 500 ms`.",
        json_schema_extra=or_lines,
    )
    campaign: CampaignBlock | None = Field(None, description="The matrix that `vnet campaign run` runs.")
    hunt: HuntBlock | None = Field(
        None, description="Faults and parameters among which `vnet hunt` looks for a broken expectation."
    )


class CampaignFile(Base):
    """A file that holds a campaign over other topology files."""

    name: Name = Field(description="Name of the campaign.")
    description: str = Field("", description="For people.")
    seed: int = Field(
        1, ge=0, le=2**62 - 1, description="Of the first repetition; repetition n has seed + n - 1."
    )
    campaign: CampaignBlock = Field(description="The matrix.")
