"""Prepares a run before the first change: checks the file, plans it, chooses a kernel that it fits."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from contract.manifest import Time
from contract.plan import Plan
from orchestrator.campaign import filters
from orchestrator.campaign.facts import facts
from orchestrator.campaign.fitting import choose_fitting
from orchestrator.campaign.place import machine_of
from orchestrator.kernel.facts import host_facts
from orchestrator.kernel.needs import needs_of
from orchestrator.kernel.protocol import KernelError, LabKernel, Launch
from orchestrator.lab.state import state_root
from orchestrator.language.uris import RemoteMachine
from orchestrator.plan.build import make_plan
from orchestrator.plan.capacity import MachineFacts, problems
from orchestrator.plan.graph import GraphError, graph
from orchestrator.project import AGENT, BUILD_AGENT
from orchestrator.topology import Problem, Topology, TopologyError, load


class Lacking(Protocol):
    """Facts of this or another machine, which tell what its kernel lacks."""

    def lacks(self, kind: str) -> str | None:
        """Why its kernel has no such qdisc or link; None if it has."""
        ...


@dataclass(frozen=True)
class Request:
    """A requested run: a topology file with its parameters (texts, as `-p` gives them) and how to run it."""

    file: Path
    parameters: Mapping[str, Any]
    seed: int | None = None
    kernel: str = "auto"
    lab: str | None = None
    time: str = "real"
    state: str | None = None  # name of its state directory, if not the lab's: one lab may run several times
    snapshots: Path | None = None  # of booted virtual machines, from one cell of a campaign to the next
    hosts: tuple[str, ...] = ()  # that carry the lab together, in place of the file's


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to begin; nothing has been made. `why`: the reason for this kernel."""

    request: Request
    plan: Plan
    kernel: LabKernel
    why: str
    agent: Path

    @property
    def time(self) -> Time:
        """The lab's kind of time; the fake kernel has none of its own."""
        return "virtual" if self.request.time == "virtual" and self.request.kernel != "fake" else "real"

    @property
    def state(self) -> str:
        """Name of the lab's state directory, under which `vnet ls` and `vnet down` know it."""
        return self.request.state or self.plan.lab

    def launch(self, run_dir: Path, *, scenario: bool, keep: bool = False) -> Launch:
        """The lab of this plan, writing to `run_dir` (made, empty), which is given the inputs first."""
        (run_dir / "topology.yaml").write_bytes(self.request.file.read_bytes())
        state = state_root() / self.state
        kept = self.request.snapshots
        snapshots = kept.resolve() if kept else None
        plan = self.plan if self.kernel.name == "fake" else with_images(self.plan)
        return Launch(plan, run_dir.resolve(), state, self.agent, scenario, keep, snapshots)

    def draw(self, run_dir: Path) -> threading.Thread:
        """Begin to draw the topology into `run_dir` while the lab is made; join it to have it whole."""
        drawing = threading.Thread(target=_draw, args=(self.plan, run_dir / "topology.svg"))
        drawing.start()
        return drawing


def prepare(request: Request, out: Path, topology: Topology | None = None) -> Prepared:
    """Check, plan and choose; `out` is where the run will write, `topology` the file if it has been read.

    Raises TopologyError for the file or where it does not fit this machine, KernelError for the machine.
    """
    topology = topology or load(request.file, request.parameters, request.hosts)
    plan = make_plan(topology, request.lab, request.seed)
    return prepare_plan(request, plan, lambda: bridged_plan(request, topology), out)


def bridged_plan(request: Request, topology: Topology) -> Plan:
    """The plan for machines whose kernel has no netem: links of virtual machines run through bridge VMs."""
    return make_plan(topology, request.lab, request.seed, netem_in_vms=True)


def prepare_plan(request: Request, plan: Plan, bridged: Callable[[], Plan], out: Path) -> Prepared:
    """As `prepare`, for a finished plan; on this or another machine."""
    if wrong := filters.planned(plan):
        raise TopologyError(wrong)
    if plan.hosts:
        return _spread(request, plan, bridged, out)
    if request.time == "real" and (machine := machine_of(plan, request.kernel)) is not None:
        return _elsewhere(request, plan, bridged, machine, out)
    if request.time == "virtual" and request.kernel != "fake":
        return _virtual(request, plan, out)
    plan = _bridged(plan, bridged, request, host_facts)
    choice, found = choose_fitting(plan, request.kernel, _candidates(request), out)
    if found:
        raise TopologyError(found)
    return Prepared(request, plan, choice.kernel, choice.why, agent_binary())


def _virtual(request: Request, plan: Plan, out: Path) -> Prepared:
    """Prepares a run in virtual time; finds the files that its programs need now, not at their start."""
    from orchestrator.campaign import closing  # imported only when it is requested

    choice, agent = closing.fitted(plan, request.kernel, agent_binary, out)
    return Prepared(request, plan, choice.kernel, choice.why, agent)


def _elsewhere(
    request: Request, plan: Plan, bridged: Callable[[], Plan], machine: RemoteMachine, out: Path
) -> Prepared:
    """Prepares a run on another machine: examines that machine; only the run directory is local."""
    if contained := [node.name for node in plan.nodes if node.image]:
        rule = "are made of container images, which are not carried to other machines"
        raise KernelError(f"{', '.join(contained)}: {rule}; run the lab here, or run vnet there")
    from orchestrator.kernel.remote.kernel import RemoteKernel  # imported only when it is requested

    kernel = RemoteKernel(machine, agent_binary())
    plan = _bridged(plan, bridged, request, lambda: kernel.examine(plan))
    why = kernel.choose(plan)
    here = MachineFacts(disk_available_bytes=facts("uml", out).disk_available_bytes)
    if found := [*kernel.examine(plan).problems, *problems(plan, here)]:
        raise TopologyError(found)
    return Prepared(request, kernel.plan_there(plan), kernel, why, kernel.agent)


def _spread(request: Request, plan: Plan, bridged: Callable[[], Plan], out: Path) -> Prepared:
    """Prepares a run over several hosts: examines each host; only the run directory is local."""
    from orchestrator.kernel.multi_host.kernel import HostsKernel  # imported only when it is requested

    if request.time != "real" or request.kernel not in ("auto", "host"):
        rule = (
            f"hosts have kernels and clocks of their own, not --time {request.time} --kernel {request.kernel}"
        )
        raise KernelError(f"{plan.topology}: {rule}; leave these options, or the hosts, out")
    kernel = HostsKernel(agent_binary())
    plan = _bridged(plan, bridged, request, lambda: kernel.examine(plan))
    why = kernel.choose(plan)
    here = MachineFacts(disk_available_bytes=facts("uml", out).disk_available_bytes)
    if found := [*kernel.problems(plan), *problems(plan, here)]:
        raise TopologyError(found)
    return Prepared(request, kernel.plan_there(plan), kernel, why, kernel.agent)


def _bridged(plan: Plan, bridged: Callable[[], Plan], request: Request, look: Callable[[], Lacking]) -> Plan:
    """With virtual machines, on a machine whose kernel has no netem, links run through bridge VMs."""
    if request.kernel == "fake" or not any(node.kind == "vm" for node in plan.nodes):
        return plan
    if "netem" not in needs_of(plan).kinds or look().lacks("netem") is None:
        return plan
    return bridged()


def with_images(plan: Plan) -> Plan:
    """The plan with container images unpacked on this machine; TopologyError where one is refused."""
    if not any(node.image for node in plan.nodes):
        return plan
    from orchestrator.images import ImageError, oci  # here: most plans have none

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


def _candidates(request: Request) -> list[LabKernel] | None:
    """The kernels to choose from; None: all that this machine may have."""
    if request.kernel == "fake":
        from orchestrator.kernel.fake import FakeKernel

        return [FakeKernel()]
    return None


def _draw(plan: Plan, path: Path) -> None:
    try:
        path.write_bytes(graph(plan))
    except (GraphError, OSError):
        path.unlink(missing_ok=True)  # a run is worth having without it; `vnet graph` says what is missing


def agent_binary() -> Path:
    """The nodes' agent: $VNET_AGENT, else the project's release build, else the one on the PATH."""
    if given := os.environ.get("VNET_AGENT"):
        if not os.access(given, os.X_OK):
            raise KernelError(f"VNET_AGENT={given}: no program is there; unset it or build the agent")
        return Path(given).resolve()
    found = str(AGENT) if AGENT.exists() else shutil.which("vnet-agent")
    if found is None:
        raise KernelError(f"{AGENT}: the agent is not built; {BUILD_AGENT}")
    return Path(found)
