"""Driver `fake`: keeps nodes in memory, creates nothing, and takes no time; it writes invented but
well-formed raw files.

It makes everything around a lab (command line, reduction, reports) testable in milliseconds. A user must
request it, and the manifest then states `driver: fake`.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from contract.plan import Capture, Node, Step
from orchestrator.lab import operations
from orchestrator.lab.driver import PATIENCE_NS, DriverContext, OnMessage
from orchestrator.lab.drivers.fake_run import FakeRun
from orchestrator.lab.drivers.fake_tools import FakeTools
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.operations import Answer, OfOneExec, OfOneNode, Operation
from orchestrator.lab.sandbox import DISK_BYTES

FIRST_PID = 4_200_000  # larger than any pid of the kernel, so that it cannot be taken for a process


class FakeDriver:
    """Stores the requested state of nodes and answers every operation from it."""

    name = "fake"

    def __init__(self, context: DriverContext) -> None:
        self._at = context
        self._tools = FakeTools()
        self._nodes: dict[str, Node] = {}
        self._core: str | None = None
        self._hostnames: dict[str, str] = {}
        self._software: dict[str, dict[str, operations.SoftwareState]] = {}
        self._frozen: set[tuple[str, str]] = set()  # (node, program) of stopped programs
        self._pids = itertools.count(FIRST_PID)
        self._ids = itertools.count(1)
        self._run = FakeRun(context, self._tools.qdiscs)

    def open(self) -> operations.Greeting:
        return {"version": "fake", "pid": next(self._pids), "clock_offset_ns": 0}

    def create(self, nodes: Sequence[Node], core: str | None) -> dict[str, int]:
        if taken := [n.name for n in nodes if n.name in self._nodes]:
            raise LabError(f"node {taken[0]}: exists already; destroy it first")
        self._core = core
        self._nodes |= {n.name: n for n in nodes}
        self._hostnames |= {n.name: n.hostname for n in nodes}
        self._software |= {n.name: {} for n in nodes}
        return {n.name: next(self._pids) for n in nodes}

    def apply(self, step: Step) -> None:
        self._tools.run(step.tool, step.netns, step.text)

    def change(self, step: Step, device: str) -> list[dict[str, Any]]:
        self.apply(step)
        return self.qdiscs(step.netns)

    def configure(self, nodes: Sequence[Node], ports: Sequence[str]) -> dict[str, Any]:
        return {
            n.name: {
                "hostname": self._hostnames[n.name],
                "interfaces": self._interfaces(n),
                "forward": n.forward,
                "routes": [{"to": list(r.to), "via": list(r.via)} for r in n.routes],
            }
            for n in nodes
        }

    def devices(self, netns: str) -> list[dict[str, Any]]:
        return self._tools.devices(netns)

    def qdiscs(self, netns: str) -> list[dict[str, Any]]:
        return self._tools.qdiscs(netns)

    def limit(self, nodes: Sequence[Node]) -> dict[str, Any]:
        self._nodes |= {n.name: n for n in nodes}
        return {
            n.name: {"cpu_cores": n.cpu_limit_cores, "cpu_mhz": n.cpu_limit_mhz, "memory_bytes":
            n.memory_limit_bytes, "processes": n.process_limit} | ({"core": 1} if n.own_core else {})
            for n in nodes if n.cpu_limit_cores or n.cpu_limit_mhz or n.memory_limit_bytes or n.process_limit
            or n.own_core
        }  # fmt: skip

    def counters(self, node: Node) -> operations.Counters:
        return {"cpu": [], "memory": None}

    def call(self, request: Operation[Answer], *, patience_ns: int = PATIENCE_NS) -> Answer:
        answers: list[Message] = []
        self.submit(request, answers.append)
        return request.read(answers[0])

    def submit(self, request: Operation[Any], on_answer: OnMessage, on_event: OnMessage | None = None) -> int:
        number = next(self._ids)
        try:
            answer = self._perform(request, on_event or (lambda _: None))
        except LabError as error:
            answer = {"ok": False, "error": str(error)}
        on_answer(answer)
        return number

    def capture(self, capture: Capture, file: Path, on_death: Callable[[str], None] | None = None) -> Any:
        return self._run.capture(capture, file)

    def power(self, nodes: Sequence[Node], on: bool) -> None:
        """Does nothing: a fake node consists of its programs and its links only."""

    def destroy(self, nodes: Sequence[Node] | None) -> None:
        for node in list(self._nodes.values()) if nodes is None else nodes:
            self._nodes.pop(node.name, None)
            self._software.pop(node.name, None)
            self._tools.forget(node.netns)
            for interface in node.interfaces:
                self._tools.drop(self._core or "", interface.port)
        if nodes is None:
            self._tools.forget(self._core or "")

    def close(self) -> None:
        """Does nothing: the driver holds no resources."""

    def _interfaces(self, node: Node) -> list[dict[str, Any]]:
        present = {e["ifname"]: e for e in self._tools.devices(node.netns)}
        return [
            {"name": i.name, "address": i.address, "prefix": i.prefix, "up": True,
             "mtu": present[i.name]["mtu"], "mac": present[i.name]["address"],
             "offloads": {"tso": False, "gso": False, "gro": False, "multi_segment": False},
             **({"second": i.second, "second_prefix": i.second_prefix} if i.second else {})}
            for i in node.interfaces if i.name in present
        ]  # fmt: skip

    def _perform(self, request: Operation[Any], on_event: OnMessage) -> Message:
        if isinstance(request, OfOneNode) and request.node not in self._nodes:
            raise LabError(f"node {request.node}: not in this lab; `create` it first")
        if isinstance(request, operations.Start):
            return request.accept(self._start(request.node, request.software))
        if isinstance(request, operations.Stop):
            return request.accept(self._stop(request.node, request.software))
        if isinstance(request, operations.Freeze):
            return request.accept(self._freeze(request))
        if isinstance(request, operations.Disk):
            size = self._nodes[request.node].disk_limit_bytes or DISK_BYTES
            return request.accept({"size_bytes": size, "free_bytes": 0 if request.full else size})
        if isinstance(request, operations.Software):
            states = {n: {s: v.copy() for s, v in of.items()} for n, of in self._software.items()}
            return request.accept({"nodes": states})
        if isinstance(request, operations.Exec):
            return request.accept(self._execute(request, on_event))
        if isinstance(request, operations.Set):
            return request.accept(self._set(request))
        if isinstance(request, OfOneExec):
            raise LabError(f"exec {request.target}: has ended")
        return self._run.perform(request)

    def _start(self, node: str, software: Mapping[str, Any]) -> operations.Started:
        name, known = software["name"], self._software[node]
        if name in known and known[name]["state"] == "ready":
            raise LabError(f"software {name}: runs already; stop it first")
        process = software.get("process")
        if process is None:
            raise LabError(f"software {name}: has no process; roles of the agent are armed with `workload`")
        pid = next(self._pids)
        known[name] = {
            "state": "ready" if process["expect"] == "running" else "exited",
            "pid": pid, "status": None, "restarts": 0,
        }  # fmt: skip
        (self._at.run_dir / "raw" / "logs" / f"{node}.{name}.log").write_text("driver fake: nothing ran\n")
        return {"pid": pid, "ready_ns": 0}

    def _stop(self, node: str, name: str) -> operations.ExitStatus:
        if name not in self._software[node]:
            raise LabError(f"software {name}: not on this node, which has {sorted(self._software[node])}")
        self._frozen.discard((node, name))
        self._software[node][name].update({"state": "exited", "status": 0})
        return {"status": 0}

    def _freeze(self, request: operations.Freeze) -> operations.Frozen:
        known, wanted = self._software[request.node], request.software
        if wanted is not None and wanted not in known:
            raise LabError(f"software {wanted}: not on this node; start it first")
        chosen = {(request.node, name) for name, state in known.items() if state["state"] == "ready"}
        chosen = {one for one in chosen if wanted in (None, one[1])}
        changed = chosen - self._frozen if request.frozen else chosen & self._frozen
        self._frozen ^= changed
        return {"software": sorted(name for _, name in changed)}

    def _execute(self, request: operations.Exec, on_event: OnMessage) -> operations.ExitStatus:
        argv = request.argv
        said = {"hostname": self._hostnames[request.node], "echo": " ".join(argv[1:])}.get(argv[0])
        if said is not None:
            data = base64.b64encode(f"{said}\n".encode()).decode()
            on_event({"event": "output", "stream": "stdout", "data": data})
        return {"status": {"true": 0, "hostname": 0, "echo": 0, "false": 1}.get(argv[0], 127)}

    def _set(self, request: operations.Set) -> operations.NodeSettings:
        netns, mtus = self._nodes[request.node].netns, dict(request.mtu or {})
        for interface, mtu in mtus.items():
            self._tools.run("ip", netns, f"link set dev {interface} mtu {mtu}")
        if request.hostname:
            self._hostnames[request.node] = request.hostname
        return {"mtu": mtus, "hostname": self._hostnames[request.node]}
