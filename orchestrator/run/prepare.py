"""Prepares a run before the first change: checks the file, plans it, chooses a kernel that it fits."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contract.manifest import Time
from contract.plan import Plan
from orchestrator.kernel import limits
from orchestrator.kernel.place import machine_of
from orchestrator.kernel.protocol import KernelError, LabKernel, Launch, NoKernel, Wish
from orchestrator.kernel.registry import choose, made
from orchestrator.lab.state import state_root
from orchestrator.language.kernels import HERE
from orchestrator.plan.build import make_plan
from orchestrator.plan.graph import GraphError, graph
from orchestrator.project import AGENT, BUILD_AGENT
from orchestrator.run import filters
from orchestrator.topology import Problem, Topology, TopologyError, load

_KEPT: dict[str, list[LabKernel]] = {}  # by the lab's time, for checks of many plans


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
    choice = choose(plan, Wish(request.kernel, request.time, out, bridged, agent_binary))
    if choice.fit.problems:
        raise TopologyError(list(choice.fit.problems))
    return Prepared(request, choice.fit.plan, choice.kernel, choice.why, agent_binary())


def insist_it_fits(plan: Plan, time: str = "real", out: Path = Path()) -> None:
    """TopologyError where no kernel that a run would choose can hold the plan, or tcpdump refuses one of its
    filters; makes nothing. Machines that the file names are examined by a run, and by nothing that only reads
    files.
    """
    found = filters.planned(plan)
    if time == "virtual" or not (plan.hosts or machine_of(plan)):
        wish = Wish(time=time, out=out)
        kernels = _KEPT.get(time) or made(HERE, plan, wish)
        if time == "virtual":  # most cells of a campaign see the same files
            _KEPT[time] = kernels
        try:
            found += choose(plan, wish, kernels).fit.problems
        except NoKernel as error:
            found += error.problems or limits.on_any(plan, out)
    if found:
        raise TopologyError(found)


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
