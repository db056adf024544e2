"""Lab kernel `ssh`: the kernel of another machine, host or uml, whichever can carry the plan there.

vNET copies its code and the agent there over ssh and runs the same lab process there; owner.py connects its
events and control socket to this machine and fetches its run directory.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from contract import codec, rundir
from contract.plan import Plan
from orchestrator.kernel import detached, limits
from orchestrator.kernel.needs import netem_placed, outside, plugin_queues
from orchestrator.kernel.protocol import Fit, KernelError, LabKernel, Launch, Missing, NoKernel, Wish
from orchestrator.kernel.registry import machine_of
from orchestrator.kernel.remote import stage
from orchestrator.kernel.remote.account import PREPARE, Account, account
from orchestrator.kernel.remote.home import cleanup_remote
from orchestrator.kernel.remote.remote_lab import RemoteLab
from orchestrator.kernel.remote.ssh import Connection
from orchestrator.language.problem import Problem
from orchestrator.language.uris import RemoteMachine, libvirt_machine
from orchestrator.project import CODE_ROOT

CHECK_S = 120.0  # s; the test of link kinds takes a tenth of a second, and long on a loaded machine
ROOT_REMEDY = "log in as root, or allow sudo without a password for that account"


@dataclass(frozen=True, slots=True)
class Answer:
    """The other machine's answer to a plan.

    kinds: for each kind of qdisc or link None if its kernel has it, else the error text. refused: the reason
    why no kernel there can carry the plan; None if one can.
    """

    account: Account
    code: str
    kinds: dict[str, str | None]
    refused: str | None
    problems: tuple[Problem, ...] = ()
    kernel: str = ""
    why: str = ""

    def lacks(self, kind: str) -> str | None:
        """Returns why the kind does not work there; None if it works."""
        return self.kinds.get(kind, "not tried")


class RemoteKernel(LabKernel):
    """The kernel of another machine. machine: as the user named it; agent: path of the nodes' agent here,
    which is copied there.
    """

    name = "ssh"

    def __init__(self, machine: RemoteMachine, agent: Path) -> None:
        self.machine = machine
        self.described = machine.url
        self.agent = agent
        self.why = "asked for"
        self._last: tuple[Plan, Answer] | None = None

    @classmethod
    def of(cls, plan: Plan, wish: Wish) -> Self:
        """Returns the kernel of the machine that the wish or the plan names; raises KernelError if nodes have
        container images.
        """
        if contained := [node.name for node in plan.nodes if node.image]:
            rule = "are made of container images, which are not carried to other machines"
            raise KernelError(f"{', '.join(contained)}: {rule}; run the lab here, or run vnet there")
        machine = machine_of(plan, wish.kernel)
        # another machine is only used for runs, which name a machine and an agent
        assert machine is not None and wish.agent is not None
        return cls(machine, wish.agent())

    @classmethod
    def clean(cls, state_dir: Path) -> bool:
        """Takes the lab down on the other machine and returns True, since nothing else of it is
        on this one.
        """
        cleanup_remote(state_dir)
        return True

    def examine(self, plan: Plan, wish: Wish) -> Fit:
        """Returns the plan as it runs there and the limits that it exceeds, there and on the disk here;
        raises NoKernel, with everything that is missing, if the machine cannot carry it.
        """
        if absent := plugin_queues(plan) + outside(plan):
            needs = "".join(f"\n  needs {one}" for one in absent)
            raise NoKernel(f"{plan.topology}: {self.machine.url} cannot run lab {plan.lab}{needs}")
        plan = netem_placed(plan, wish.bridged, self.ask(plan).lacks)
        why = self._choose(plan)
        found = [*self.ask(plan).problems, *limits.of_disk(plan, wish.out)]
        return Fit(self.plan_there(plan), (), found, why)

    def ask(self, plan: Plan) -> Answer:
        """Copies vNET's code and the agent to the machine if they are not there, and examines it, once for
        each plan. Raises KernelError if it does not answer, NoKernel if it lacks what every lab needs.
        """
        plan = self.plan_there(plan)
        if self._last is None or self._last[0] != plan:
            with (
                tempfile.TemporaryDirectory(prefix="vnet-ssh-") as directory,
                Connection(self.machine, Path(directory)) as connection,
            ):
                self._last = (plan, self._ask(connection, plan))
        return self._last[1]

    def _ask(self, connection: Connection, plan: Plan) -> Answer:
        there = account(connection)
        if missing := there.missing():
            needs = "".join(f"\n  needs {one}" for one in missing)
            raise NoKernel(f"{plan.topology}: {self.machine.url} cannot run lab {plan.lab}{needs}")
        upload = stage.code(there, self.agent)
        stage.carry(connection, there, upload)
        asked = {"plan": dataclasses.asdict(plan), "kernel": self.machine.kernel}
        said = connection.run(
            there.program(upload.target, "check"),
            lambda out: out.write(json.dumps(asked).encode()),
            CHECK_S,
            "looking at what it can do",
        )
        return _answer(self.machine, there, upload.target, said)

    def can(self, plan: Plan) -> list[Missing]:
        """Returns the needs that the other machine lacks, and images that are missing here."""
        answer = self.ask(plan)
        found = []
        if answer.refused is not None:
            found.append(Missing("a machine that can", answer.refused, PREPARE))
        try:
            stage.images(answer.account, plan)
        except KernelError as error:
            found.append(Missing("its images here", "they are carried there", str(error)))
        return found

    def _choose(self, plan: Plan) -> str:
        answer = self.ask(plan)
        if missing := self.can(plan):
            needs = "".join(f"\n  {self.machine.url}: needs {one}" for one in missing)
            root = "" if answer.account.root else f"\n  to be root there: {ROOT_REMEDY}"
            raise NoKernel(f"{plan.topology}: {answer.account.name} cannot run lab {plan.lab}{needs}{root}")
        return f"{answer.why}; on {answer.account.name} ({self.machine.url})"

    def plan_there(self, plan: Plan) -> Plan:
        """Returns the plan with the libvirt URI that is valid on that machine, if its own URI names another
        machine; else the plan as it is.
        """
        if libvirt_machine(plan.libvirt) is None:
            return plan
        return dataclasses.replace(plan, libvirt=self.machine.libvirt)

    def start(self, launch: Launch) -> detached.DetachedLab:
        """Starts the owner process here, which copies, starts and owns the lab there."""
        control = detached.control_socket(launch.state_dir)
        raw = launch.run_dir / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        rundir.write_plan(launch.run_dir, launch.plan)
        remote_lab = self._remote_lab(launch)
        (raw / "remote-lab.json").write_text(codec.to_json(remote_lab))
        return detached.spawn(
            [sys.executable, "-s", "-m", "orchestrator.kernel.remote.owner", str(raw / "remote-lab.json")],
            launch.run_dir,
            control,
            logs=["remote.log", "lab.log"],
            env={**os.environ, "PYTHONPATH": str(CODE_ROOT)},
            lifeline=not launch.detached,
        )

    def _remote_lab(self, launch: Launch) -> RemoteLab:
        answer = self.ask(launch.plan)
        return RemoteLab(
            machine=self.machine,
            account=answer.account,
            code=answer.code,
            home=f"{answer.account.state}/far/{launch.state_dir.name}-{uuid.uuid4().hex[:12]}",
            lab=launch.plan.lab,
            run_dir=str(launch.run_dir),
            state_dir=str(launch.state_dir),
            agent=str(launch.agent),
            kernel=answer.kernel,
            why=self.why,
            scenario=launch.scenario,
            keep=launch.keep,
        )


def _answer(machine: RemoteMachine, there: Account, code: str, said: bytes) -> Answer:
    try:
        told: dict[str, Any] = json.loads(said)
    except ValueError:
        shown = said.decode(errors="replace").strip()[:200]
        raise KernelError(
            f"{machine.url}: its answer is not ours: {shown!r}; does its shell print something?"
        ) from None
    found = [codec.build(Problem, one) for one in told["problems"]]
    problems = tuple(dataclasses.replace(one, rule=f"on {there.name}: {one.rule}") for one in found)
    return Answer(
        there, code, told["kinds"], told["refused"], problems, told.get("kernel", ""), told.get("why", "")
    )
