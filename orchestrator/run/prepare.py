"""Prepares a run without changing the machine: checks the file, makes its plan and chooses a kernel."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contract.manifest import Time
from contract.plan import Plan
from orchestrator.kernel import limits
from orchestrator.kernel.protocol import KernelError, LabKernel, NoKernel, Wish
from orchestrator.kernel.registry import choose, machine_of, made
from orchestrator.lab.cleanup import running_labs
from orchestrator.lab.state import state_root
from orchestrator.language.kernels import HERE
from orchestrator.plan.bridge_vms import with_bridge_vms
from orchestrator.plan.build import make_plan
from orchestrator.plan.nics import nic_uses
from orchestrator.project import AGENT, BUILD_AGENT
from orchestrator.reservations import running
from orchestrator.reservations.labs import admit
from orchestrator.run import filters
from orchestrator.run.directories import Place, RunError
from orchestrator.topology import Problem, Topology, TopologyError, load
from orchestrator.topology.conditions import failing
from orchestrator.topology.loading import problem_in

ALLOW_OUTSIDE = "--allow-outside"
_KEPT: dict[str, list[LabKernel]] = {}  # kernels by kind of time; kept while many plans are checked


@dataclass(frozen=True)
class Request:
    """A requested run: a topology file, its parameters (texts, as `-p` gives them), and options.

    `seed`, `lab` and `hosts` replace those of the file, unless they are None or empty.
    """

    file: Path
    parameters: Mapping[str, Any]
    seed: int | None = None
    kernel: str = "auto"
    lab: str | None = None
    time: str = "real"
    state: str | None = None  # name of the state directory; None: the lab's name
    snapshots: Path | None = None  # directory in which cells of a campaign share booted virtual machines
    hosts: tuple[str, ...] = ()  # hosts of a multi-host lab
    fail_if: tuple[str, ...] = ()  # conditions that must not come true, beside the file's expectations
    allow_outside: tuple[str, ...] = ()  # endpoints outside the lab that the command line allows
    clock_ns: int | None = None  # start of the lab's clock in virtual time (Unix ns); None for the file's


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to begin and has changed nothing yet. `why`: the reason for this kernel."""

    request: Request
    plan: Plan
    kernel: LabKernel
    why: str
    agent: Path
    time: Time  # the lab's kind of time; always real with the kernel `fake`
    state_dir: Path  # `vnet ls` and `vnet down` find the lab by the directory's name

    @classmethod
    def of(cls, request: Request, plan: Plan, kernel: LabKernel, why: str) -> Prepared:
        """Returns the run of a plan in the chosen kernel; KernelError if there is no agent. The time is
        virtual only if the request wants virtual time and another kernel than the fake one.
        """
        time: Time = "virtual" if request.time == "virtual" and request.kernel != "fake" else "real"
        state_dir = state_root() / (request.state or plan.lab)
        return cls(request, plan, kernel, why, agent_binary(), time, state_dir)


def begin(request: Request, place: Place) -> tuple[Prepared, Path]:
    """Prepares a run as `prepare` does, makes its directory and returns both.

    Raises RunError if a lab of that name runs here or the directory cannot be made. Raises ReservationError
    if another account has reserved a needed resource, or if the lab exceeds its account's quota. Also raises
    the errors of `prepare`.
    """
    prepared = prepare(request, place.out or place.results)
    lab = prepared.plan.lab
    if lab in running_labs():
        theirs = running.of_another(lab)
        ends = "wait until it has ended" if theirs else f"`vnet down {lab}` ends it"
        whose = f" as {theirs.account}'s" if theirs else ""
        raise RunError(f"lab {lab}: runs already{whose}; {ends}, --lab NAME gives this one another name")
    if request.kernel != "fake" and not (prepared.plan.hosts or machine_of(prepared.plan)):
        admit(prepared.plan, prepared.state_dir)  # a lab on another machine uses no resources of this one
    return prepared, place.run_dir(lab)


def prepare(request: Request, out: Path, topology: Topology | None = None) -> Prepared:
    """Checks the request's file, makes its plan and chooses a kernel.

    `out` is the directory to which the run will write; `topology` is the file's content if it has been read
    already. Raises TopologyError if the file is wrong or its lab does not fit this machine, KernelError if
    the machine lacks a kernel or the agent.
    """
    topology = topology or load(request.file, request.parameters, request.hosts)
    topology = replace(topology, conditions=failing(request.fail_if))
    plan = make_plan(topology, request.lab, request.seed)
    if request.clock_ns is not None:
        plan = replace(plan, clock_ns=request.clock_ns)
    return prepare_plan(request, plan, out)


def prepare_plan(request: Request, plan: Plan, out: Path) -> Prepared:
    """Checks the capture filters of a plan that exists, chooses a kernel and returns the prepared run. Raises
    TopologyError and KernelError as `prepare` does.
    """
    # the fake kernel invents packets, and has no programs to send or compress them
    if request.kernel == "fake":
        plain = (replace(point, compress="", to="") for point in plan.captures)
        plan = replace(plan, captures=tuple(plain))
    if refused := _not_permitted(plan, request.allow_outside):
        raise TopologyError(refused)
    wrong = filters.planned(plan) if any(point.filter for point in plan.captures) else []
    if wrong := wrong + filters.packing(plan, request.time):
        raise TopologyError(wrong)
    choice = choose(plan, Wish(request.kernel, request.time, out, with_bridge_vms, agent_binary))
    if choice.fit.problems:
        raise TopologyError(list(choice.fit.problems))
    return Prepared.of(request, choice.fit.plan, choice.kernel, choice.why)


def _not_permitted(plan: Plan, allowed: Sequence[str]) -> list[Problem]:
    """Returns one Problem for each endpoint outside the lab that the plan or the command line alone names.

    A file may come from anywhere, so it cannot open a way out of the lab by itself; and an option that no
    node uses may be a slip.
    """
    named = {(node.name, text) for node in plan.nodes for text in node.outside}
    found = [
        problem_in(
            plan.topology,
            ("nodes", node, "outside"),
            text,
            "is outside the lab, and the command line does not allow it",
            f"add `{ALLOW_OUTSIDE} {text}` if this lab may connect to it",
        )
        for node, text in sorted(named)
        if text not in allowed
    ]
    for text in allowed:
        if text not in {one for _, one in named}:
            rule = "is allowed, and no node of the file names it"
            remedy = f"write `outside: {{{text}}}` at a node, or leave the option out"
            found.append(Problem(plan.topology, 0, ALLOW_OUTSIDE, text, rule, remedy))
    return found


def insist_it_fits(plan: Plan, time: str = "real", out: Path = Path(), assume_nics: bool = False) -> None:
    """Raises TopologyError if tcpdump refuses a filter of the plan, or if the plan does not fit this machine;
    assume_nics: True if the check assumes that the machine has the NICs that the plan names.

    Changes nothing. Does not examine other machines that the file names, since only a run does so.
    """
    found = filters.planned(plan) + filters.packing(plan, time)
    if time == "virtual" or not (plan.hosts or machine_of(plan)):
        wish = Wish(time=time, out=out)
        kernels = _KEPT.get(time) or made(HERE, plan, wish)
        if time == "virtual":  # most cells of a campaign use the same files
            _KEPT[time] = kernels
        try:
            found += choose(plan, wish, kernels).fit.problems
        except NoKernel as error:
            found += error.problems or limits.on_any(plan, out)
    if assume_nics:
        found = without_nics(plan, found)
    if found:
        raise TopologyError(found)


def without_nics(plan: Plan, problems: Sequence[Problem]) -> list[Problem]:
    """Returns the problems that are not refusals of a NIC of the plan."""
    places = {use.place for use in nic_uses(plan)}
    return [one for one in problems if one.path not in places]


def with_images(plan: Plan) -> Plan:
    """Unpacks the plan's container images on this machine and returns the plan with their directories.

    Raises TopologyError if an image is refused or has changed since the plan was made.
    """
    if not any(node.image for node in plan.nodes):
        return plan
    from orchestrator.images import ImageError, oci  # imported here: most plans have no image

    roots: dict[str, str] = {"": ""}
    for node in plan.nodes:
        if node.image in roots:
            continue
        try:
            archive = oci.read(Path(node.image))
            if archive.digest != node.image_digest:
                raise ImageError(f"image oci:{node.image}: was changed just now; run it again")
            roots[node.image] = str(oci.unpacked(archive))
        except ImageError as error:
            rule, _, remedy = str(error).rpartition("; ")
            problem = Problem(plan.topology, 0, f"nodes.{node.name}.image", "", rule, remedy)
            raise TopologyError([problem]) from None
    nodes = tuple(replace(node, image_root=roots[node.image]) for node in plan.nodes)
    return replace(plan, nodes=nodes)


def agent_binary() -> Path:
    """Returns the agent's path: $VNET_AGENT, else the project's release build, else `vnet-agent` on the PATH.
    Raises KernelError if there is none, or if $VNET_AGENT does not name a program.
    """
    if given := os.environ.get("VNET_AGENT"):
        if not os.access(given, os.X_OK):
            raise KernelError(f"VNET_AGENT={given}: no program is there; unset it or build the agent")
        return Path(given).resolve()
    found = str(AGENT) if AGENT.exists() else shutil.which("vnet-agent")
    if found is None:
        raise KernelError(f"{AGENT}: the agent is not built; {BUILD_AGENT}")
    return Path(found)
