"""Driver `light`, for light nodes: makes namespaces and agents through the launcher, wires by ip and tc,
limits by control groups.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from contract.plan import Capture, Node, Step
from contract.plan.family import speaks_ipv6
from orchestrator.lab import (
    carriers,
    cgroup,
    etc_hosts,
    namespaces,
    netem_generator,
    node_config,
    operations,
    own_capture,
    sandbox,
    tools,
)
from orchestrator.lab.captures import TcpdumpCapture
from orchestrator.lab.changer import Changers
from orchestrator.lab.clock import SECOND
from orchestrator.lab.cores import Cores
from orchestrator.lab.driver import PATIENCE_NS, CaptureProcess, DriverContext, OnMessage
from orchestrator.lab.errors import LabError
from orchestrator.lab.launcher import Launcher
from orchestrator.lab.limits import Limits
from orchestrator.lab.operations import Answer, Operation
from orchestrator.lab.own_groups import OwnGroups, limited, occupied
from orchestrator.lab.traceroute import Traceroute, TracerouteResult, traceroute

OPEN_NS = 15 * SECOND
END_NS = 5 * SECOND
# The number of nodes in one request. Each fork copies the launcher's memory, so a large request enlarges
# every node: 350 clients take 0.23 MB each in such batches, 0.51 MB by one request. Also, an answer then
# takes at most the time for one batch, not for a whole lab.
BATCH = 20
# Environment variables of this process that programs on nodes get.
PASSED_ON = ("PATH", "HOME", "TZ", "TERM", "LANG")


class LightDriver:
    """The driver of labs whose nodes are all light; the VM driver uses it for its light nodes."""

    name = "light"

    def __init__(self, context: DriverContext) -> None:
        self._at = context
        self._groups = cgroup.Groups(cgroup.this_machine(), context.plan.lab)
        self._limits = Limits(self._groups, os.cpu_count() or 1, context.cpu_mhz)
        self._node_limits = sandbox.NodeLimits(self._groups, sandbox.of_this_machine())
        self._own_groups = OwnGroups(self._groups, self._node_limits)
        self._nodes = {n.name: n for n in context.plan.nodes}
        self._others = {n.name: n for n in context.others}
        self._cores = Cores(context.plan.nodes)
        self._pids: dict[str, int] = {}
        self._ipv6 = {s.name for s in context.plan.segments if s.ipv6}
        self._changers = Changers()
        self._process: subprocess.Popen[bytes] | None = None
        self._launcher: Launcher | None = None

    def open(self) -> operations.Greeting:
        socket = self._at.state.directory / "agent.sock"
        log = self._at.run_dir / "raw" / "launcher.log"
        self._cores.leave()
        command = [str(self._at.agent), "launch", "--socket", str(socket), "--log", str(log)]
        try:
            self._process = subprocess.Popen(
                command,
                env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise LabError(f"agent {self._at.agent}: {error.strerror}; build or install it again") from error
        self._at.state.record("launcher", self._process.pid)
        self._launcher = self._connect(socket, log)
        return self._launcher.call(operations.Hello())

    def create(self, nodes: Sequence[Node], core: str | None) -> dict[str, int]:
        """Creates the core namespace (if `core` is not None) and the nodes, in batches, and returns the
        nodes' pids; while the launcher creates one batch, this process makes the control groups of the
        next.
        """
        self._limits.need(nodes)
        self._nodes |= {n.name: n for n in nodes}
        inside = self._sandbox()
        launcher, pids = self._connected(operations.Create.op), dict[str, int]()
        begun: Callable[[int], operations.Created] | None = None
        # The loop runs at least once, because a lab without nodes needs the core namespace too.
        for first in range(0, max(1, len(nodes)), BATCH):
            batch = nodes[first : first + BATCH]
            self._own_groups.make(batch)
            if begun:
                pids |= begun(PATIENCE_NS)["pids"]
            begun = launcher.begin(operations.Create(core, [self._wanted(n) for n in batch], inside))
        if begun:
            pids |= begun(PATIENCE_NS)["pids"]
        self._pids |= pids
        if core is not None:
            namespaces.bypass_netfilter(core)
        return pids

    def _wanted(self, node: Node) -> operations.NewNode:
        wanted: operations.NewNode = {
            "name": node.name, "netns": node.netns, "hostname": node.hostname,
            "cgroup_procs": self._own_groups.procs(node),
            "ipv6": speaks_ipv6(node.interfaces, self._ipv6), "mounts": sandbox.mounts(node),
            "disk_bytes": self._node_limits.disk_bytes(node),
        }  # fmt: skip
        # in virtual time the lab has a kernel of its own, and each system call costs time
        if not self._at.virtual:
            wanted["ring_bytes"] = self._node_limits.ring_bytes(len(self._at.plan.nodes))
        return wanted

    def _sandbox(self) -> operations.Sandbox:
        state_root = self._at.state.directory.parent
        return sandbox.request(
            state_root, self._at.run_dir, self._resolver(), self._node_limits.limits.disk_bytes
        )

    def known(self) -> list[Node]:
        """Returns all nodes whose names light nodes can resolve."""
        return list({**self._nodes, **self._others}.values())

    def _resolver(self) -> dict[str, str]:
        return etc_hosts.write(self._at.state.directory / "etc", self.known())

    def know(self, others: Iterable[Node]) -> None:
        """Adds nodes of another driver to the names that light nodes resolve, from the next creation or
        removal of light nodes on.
        """
        self._others |= {node.name: node for node in others}

    def forget(self, others: Iterable[Node]) -> None:
        """Removes nodes of another driver from the names that light nodes resolve. The change takes effect at
        the next creation or removal of light nodes.
        """
        for node in others:
            self._others.pop(node.name, None)

    def reached(self, node: Node) -> list[str]:
        return self._node_limits.reached(node)

    def apply(self, step: Step) -> None:
        tools.run_step(step)

    def change(self, step: Step, device: str) -> list[dict[str, Any]]:
        return self._changers.change(step, device)

    def configure(self, nodes: Sequence[Node], ports: Sequence[str]) -> dict[str, Any]:
        wanted = [node_config.network(n) for n in nodes]
        read = self.call(operations.Configure(wanted, list(ports)))["nodes"]
        carriers.hasten(self._at.plan.core_netns, ports)  # both ends of each wire are up now
        return read

    def devices(self, netns: str) -> list[dict[str, Any]]:
        return tools.read_json("ip", netns, "-d", "link")

    def qdiscs(self, netns: str) -> list[dict[str, Any]]:
        return tools.qdiscs(netns)

    def seed(self, netns: str, seeds: Mapping[str, int]) -> dict[str, int]:
        return netem_generator.seed(netns, seeds)

    def traceroute(self, ways: Sequence[Traceroute]) -> list[TracerouteResult]:
        return traceroute(ways)

    def limit(self, nodes: Sequence[Node]) -> dict[str, Any]:
        wanted = self._nodes | {n.name: n for n in nodes}
        had = list(self._groups.controllers)
        self._limits.need(nodes)
        weights = self._limits.weights(list(wanted.values()))  # raises LabError before any weight is set
        self._nodes = wanted
        self._own_groups.give([*weights, *(n.name for n in nodes if limited(n))], self._pids)
        if self._groups.controllers != had:
            self._own_groups.renew(self._nodes.values())
        applied = {n.name: self._limits.set(n) for n in nodes}
        for node in nodes:
            if (core := self._cores.bind(node.name, self._pids[node.name])) is not None:
                applied[node.name]["core"] = core
        for name, weight in self._limits.reserve(list(self._nodes.values())).items():
            applied.setdefault(name, {})["weight"] = weight
        return {name: limits for name, limits in applied.items() if limits}

    def counters(self, node: Node) -> operations.Counters:
        self._own_groups.give([node.name], self._pids)
        return {"cpu": self._groups.cpu_files(node.cgroup), "memory": self._groups.memory_file(node.cgroup)}

    def call(self, request: Operation[Answer], *, patience_ns: int = PATIENCE_NS) -> Answer:
        self._own_groups.give(occupied(request), self._pids)
        return self._connected(request.op).call(request, patience_ns=patience_ns)

    def submit(self, request: Operation[Any], on_answer: OnMessage, on_event: OnMessage | None = None) -> int:
        self._own_groups.give(occupied(request), self._pids)
        return self._connected(request.op).submit(request, on_answer, on_event)

    def capture(
        self, capture: Capture, file: Path, on_death: Callable[[str], None] | None = None
    ) -> CaptureProcess:
        lost = on_death or self._at.on_lost
        if self._at.virtual and own_capture.possible(capture):
            return own_capture.OwnCapture(self._at.loop, self.submit, capture, file, lost)
        running = TcpdumpCapture(self._at.loop, capture, file, lost)
        self._at.state.record(f"capture {capture.name}", running.pid)
        for pid in running.pids[1:]:
            # a capture that has ended already reports its reason by `on_death`
            with contextlib.suppress(LabError):
                self._at.state.record(f"capture {capture.name}", pid)
        return running

    def power(self, nodes: Sequence[Node], on: bool) -> None:
        """Does nothing: a light node consists of its programs and its links only."""

    def destroy(self, nodes: Sequence[Node] | None) -> None:
        if self._launcher is None:
            return  # nothing was created before the error
        self._changers.close()  # the tc processes keep namespaces alive
        self.call(operations.Destroy(None if nodes is None else [n.name for n in nodes]))
        gone = list(self._nodes.values()) if nodes is None else nodes
        for node in gone:
            self._nodes.pop(node.name, None)
        if nodes is None:
            self._groups.remove_all()
        else:
            self._own_groups.remove(nodes)
            self._resolver()

    def close(self) -> None:
        """Ends the launcher by a request; after 5 s sends SIGTERM, after 5 more SIGKILL."""
        if self._process is None:
            return
        if self._launcher and not self._launcher.lost:
            self._launcher.expect_end()
            self._launcher.submit(operations.Quit(), lambda _: None)
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                self._process.wait(END_NS / SECOND)
                break
            except subprocess.TimeoutExpired:
                self._process.send_signal(number)
        self._process.wait()
        if self._launcher:
            self._launcher.close()
        self._at.state.forget(self._process.pid)

    def _connected(self, op: str) -> Launcher:
        if self._launcher is None:
            raise LabError(f"launcher: {op}: it was not started")
        return self._launcher

    def _connect(self, socket: Path, log: Path) -> Launcher:
        process = self._process
        assert process is not None
        self._at.loop.until(
            self._at.loop.clock.now_ns() + OPEN_NS, "the launcher's socket",
            lambda: socket.exists() or process.poll() is not None,
        )  # fmt: skip
        if process.poll() is not None:
            said = log.read_text().strip() if log.exists() else ""
            raise LabError(
                f"launcher {self._at.agent}: ended at once with status {process.returncode}: {said[-400:]}"
            )
        return Launcher(self._at.loop, socket, self._at.on_event, self._lost)

    def _lost(self, why: str) -> None:
        status = self._process.poll() if self._process else None
        how = "" if status is None else f" with status {status}"
        self._at.on_lost(f"launcher: died{how} ({why}); see raw/launcher.log")
