"""Lab kernel `hosts`: each host's own kernel carries its part of the plan; the lab process runs here.

vNET copies its code and the agent to each host over ssh, once per version. The lab process then starts one
part per host (lab/multi_host) and connects to it by ssh. A host without a `machine` is this one.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

from contract import rundir
from contract.plan import Host, Plan
from orchestrator.kernel import detached, lab_command, limits
from orchestrator.kernel.host import HostKernel
from orchestrator.kernel.needs import netem_placed, outside, plugin_queues
from orchestrator.kernel.protocol import Fit, KernelError, LabKernel, Launch, Missing, NoKernel, Wish
from orchestrator.kernel.remote import kernel as remote
from orchestrator.kernel.remote import ssh, stage
from orchestrator.kernel.remote.account import PREPARE
from orchestrator.lab.multi_host import host_commands
from orchestrator.lab.multi_host.parting import of_host
from orchestrator.language.uris import RemoteMachine, kernel_machine
from orchestrator.project import CODE_ROOT

PART = "orchestrator.lab.multi_host.part"
AT_ONCE = 16  # number of connections that are made at the same time


@dataclasses.dataclass(frozen=True, slots=True)
class Answers:
    """The hosts' answers to a plan.

    of: the answer of each host that is reached by ssh. here: for each host that is this machine, the needs
    that it does not meet.
    """

    of: Mapping[str, remote.Answer]
    here: Mapping[str, list[Missing]]

    def lacks(self, kind: str) -> str | None:
        """Returns why the kind does not work on one of the ssh hosts; None if it works on all."""
        return next((why for answer in self.of.values() if (why := answer.lacks(kind)) is not None), None)


class HostsKernel(LabKernel):
    """The kernels of several hosts. agent: path of the nodes' agent here, which is copied to the hosts."""

    name = "hosts"
    described = "that of each host"

    def __init__(self, agent: Path) -> None:
        self.agent = agent
        self.why = "asked for"
        self._last: tuple[Plan, Answers] | None = None

    @classmethod
    def of(cls, plan: Plan, wish: Wish) -> Self:
        """Returns the kernel of the plan's hosts; raises KernelError for virtual time or a kernel that is not
        the hosts' own.
        """
        if wish.time != "real" or wish.kernel not in ("auto", "host"):
            rule = (
                f"hosts have kernels and clocks of their own, not --time {wish.time} --kernel {wish.kernel}"
            )
            raise KernelError(f"{plan.topology}: {rule}; leave these options, or the hosts, out")
        assert wish.agent is not None  # several hosts are only used for runs, which name an agent
        return cls(wish.agent())

    def examine(self, plan: Plan, wish: Wish) -> Fit:
        """Returns the plan as it runs on the hosts and the limits that it exceeds; raises NoKernel, with
        everything that is missing, if a host cannot carry its part.
        """
        absent = plugin_queues(plan) + outside(plan)
        plan = plan if absent else netem_placed(plan, wish.bridged, self.ask(plan).lacks)
        if missing := absent or self.can(plan):
            needs = "".join(f"\n  needs {one}" for one in missing)
            raise NoKernel(f"{plan.topology}: its hosts cannot run lab {plan.lab}{needs}")
        named = (f"{host.name} ({host.machine or 'this machine'})" for host in plan.hosts)
        exceeded = [problem for answer in self.ask(plan).of.values() for problem in answer.problems]
        found = [*exceeded, *limits.of_disk(plan, wish.out)]
        return Fit(self.plan_there(plan), (), found, f"hosts {', '.join(named)}")

    def ask(self, plan: Plan) -> Answers:
        """Examines all hosts in parallel, once for each plan. Raises KernelError with every host that does
        not answer, or NoKernel with the hosts that lack a need of every lab.
        """
        if self._last is None or self._last[0] != plan:
            far = [host for host in plan.hosts if host.machine]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                asked = [pool.submit(self._ask, plan, host) for host in far]
            of = dict(zip((host.name for host in far), _all(asked), strict=True))
            here = {h.name: HostKernel().can(of_host(plan, h.name)) for h in plan.hosts if not h.machine}
            self._last = plan, Answers(of, here)
        return self._last[1]

    def can(self, plan: Plan) -> list[Missing]:
        """Returns the needs of each host's part that the host lacks, and features that multi-host labs do not
        support.
        """
        answers = self.ask(plan)
        found = [
            Missing(f"on host {name}: {one.what}", one.reason, one.remedy)
            for name, missing in answers.here.items() for one in missing
        ]  # fmt: skip
        for name, answer in answers.of.items():
            if answer.refused is not None:
                found.append(Missing(f"on host {name}: a machine that can", answer.refused, PREPARE))
            try:
                stage.images(answer.account, of_host(plan, name))
            except KernelError as error:
                found.append(
                    Missing(f"for host {name}: its images here", "they are carried there", str(error))
                )
        return found + _left_out(plan)

    def plan_there(self, plan: Plan) -> Plan:
        """Returns the plan with the paths that the users' disks have on each host."""
        found = {node.name: node for node in plan.nodes}
        for name, answer in self.ask(plan).of.items():
            there = stage.with_images_there(answer.account, of_host(plan, name))
            found |= {node.name: node for node in there.nodes}
        return dataclasses.replace(plan, nodes=tuple(found.values()))

    def start(self, launch: Launch) -> detached.DetachedLab:
        """Copies images to the hosts, records the commands that reach each host, and starts the lab process
        here.
        """
        control = detached.control_socket(launch.state_dir)
        answers = self._last[1] if self._last else self.ask(launch.plan)
        raw = launch.run_dir / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        rundir.write_plan(launch.run_dir, launch.plan)
        self._carry(launch.plan, answers)
        mark = f"{launch.state_dir.name}-{uuid.uuid4().hex[:12]}"
        ways = {host.name: _way(host, answers, f"{mark}-{host.name}") for host in launch.plan.hosts}
        host_commands.note(raw, ways)
        kernel = {"kind": "host", "release": f"of {len(ways)} hosts", "why": self.why}
        return detached.spawn(
            [sys.executable, *lab_command.arguments(launch, launch.state_dir, launch.agent)],
            launch.run_dir,
            control,
            logs=["lab.log"],
            env=lab_command.environment(os.environ, kernel),
            lifeline=False,
        )

    def _ask(self, plan: Plan, host: Host) -> remote.Answer:
        return remote.RemoteKernel(_machine(host), self.agent).ask(of_host(plan, host.name))

    def _carry(self, plan: Plan, answers: Answers) -> None:
        for host in plan.hosts:
            answer = answers.of.get(host.name)
            uploads = stage.images(answer.account, of_host(plan, host.name)) if answer else []
            if answer is not None and uploads:
                with (
                    tempfile.TemporaryDirectory(prefix="vnet-ssh-") as directory,
                    ssh.Connection(_machine(host), Path(directory)) as connection,
                ):
                    for upload in uploads:
                        stage.carry(connection, answer.account, upload)


def _machine(host: Host) -> RemoteMachine:
    return dataclasses.replace(kernel_machine(host.machine), kernel="host")


def _way(host: Host, answers: Answers, home: str) -> host_commands.Way:
    """Returns the command lines that start a part on a host and that remove the rest of an ended part."""
    answer = answers.of.get(host.name)
    if answer is None:
        state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
        run = ("env", f"PYTHONPATH={CODE_ROOT}", sys.executable, "-s", "-m", PART, f"{state}/vnet/far/{home}")
        return host_commands.Way("", run, (*run, "down"))
    there, place = answer.account, f"{answer.account.state}/far/{home}"

    def command(*words: str) -> tuple[str, ...]:
        return tuple(ssh.direct(_machine(host), there.module(answer.code, PART, place, *words)))

    return host_commands.Way(host.machine, command(), command("down"))


def _left_out(plan: Plan) -> list[Missing]:
    """Returns the features of the plan that multi-host labs do not support: a link between VMs of two
    hosts whose qdisc is on a tunnel, container images, NICs.
    """
    tunnelled = {tunnel.device for tunnel in plan.tunnels}
    found = [
        Missing(
            "no qdisc on a tunnel", f"link {link.name} joins VMs of two hosts, none can prove it",
            "keep its nodes on one host (`near:`), or join them by a segment",
        )
        for link in plan.links if link.forward.device in tunnelled
    ]  # fmt: skip
    for node in plan.nodes:
        if node.image:
            found.append(
                Missing("no container image", f"node {node.name} has one", "they are not carried to hosts")
            )
        if any(card.nic or card.cable for card in node.interfaces):
            remedy = "leave `hosts:` out, and run the lab where the NIC is"
            found.append(Missing("no NIC", f"node {node.name} has one of a machine's", remedy))
    return found


def _all(asked: Sequence[Future[remote.Answer]]) -> list[remote.Answer]:
    """Returns all answers, or raises one error with the texts of all that failed: NoKernel if every host
    answered.
    """
    answers, refused, failed = [], [], []
    for one in asked:
        try:
            answers.append(one.result())
        except NoKernel as error:
            refused.append(str(error))
        except KernelError as error:
            failed.append(str(error))
    if failed:
        raise KernelError("\n".join([*failed, *refused]))
    if refused:
        raise NoKernel("\n".join(refused))
    return answers
