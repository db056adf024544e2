"""Carries out the requests that a part serves: the driver's operations, the clock, files, captures, tunnels
and the underlay.
"""

from __future__ import annotations

import base64
import os
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from contract.codec import build
from contract.plan import Capture, Node, Plan, Step
from orchestrator.lab import carriers, operations, tables
from orchestrator.lab.captures import await_start
from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import Bounded, CaptureProcess, Driver, DriverContext, Seeder
from orchestrator.lab.drivers import DRIVERS
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import STRANGE, Message
from orchestrator.lab.limits import this_clock_mhz
from orchestrator.lab.loop import Loop
from orchestrator.lab.manifest import host_facts
from orchestrator.lab.multi_host import tunnels as tunnel_maker
from orchestrator.lab.multi_host.encoding import decode_operation
from orchestrator.lab.multi_host.tunnels import reached_by
from orchestrator.lab.multi_host.underlay import Underlay
from orchestrator.lab.state import State
from orchestrator.project import AGENT

WIRES_NS = 10 * SECOND


class Home(Protocol):
    """The interface of a part that its verbs use."""

    home: Path
    loop: Loop

    @property
    def states(self) -> Path: ...
    def agree(self, silence_s: float) -> None: ...
    def claim(self, lab: str, run_dir: str) -> Path: ...
    def leave(self, number: int) -> None: ...
    def answer(self, number: int, answer: Message) -> None: ...
    def event(self, event: Message, number: int | None = None) -> None: ...


class Verbs:
    """Carries out the verbs of one part; the verb `begin` opens the driver."""

    def __init__(self, part: Home) -> None:
        self._part = part
        self._opened: Driver | None = None
        self._state: State | None = None
        self._plan: Plan | None = None
        self._run_dir = part.home / "run"
        # number of a command in the lab process -> its number in the driver
        self._executions: dict[int, int] = {}
        self._captures: dict[str, CaptureProcess] = {}
        self._underlay = Underlay(part.loop)
        self._table: dict[str, Callable[[Message], Any]] = {
            "begin": self._begin, "create": self._create, "apply": self._apply, "change": self._change,
            "configure": self._configure, "devices": lambda m: self.driver.devices(m["netns"]),
            "qdiscs": lambda m: self.driver.qdiscs(m["netns"]), "seed": self._seed,
            "limit": self._limit,
            "counters": self._counters, "capture": self._capture, "capture-stop": self._capture_stop,
            "power": self._power, "destroy": self._destroy, "reached": self._reached,
            "tunnels": lambda m: tunnel_maker.make_here(m["core"], m["tunnels"]),
            "files": lambda _: self._files(), "listen": self._underlay.listen, "send": self._underlay.send,
            "heard": self._underlay.heard,
        }  # fmt: skip

    @property
    def driver(self) -> Driver:
        """Returns the driver that `begin` opened; raises LabError before `begin`."""
        if self._opened is None:
            raise LabError("this part has not begun")
        return self._opened

    def carry_out(self, message: Message) -> None:
        """Carries out one request and answers it. The answer to a submitted operation may follow later.

        LabError, OSError and malformed requests become an answer with `ok` false; a malformed request also
        prints a traceback to the part's log.
        """
        number, verb = int(message["id"]), str(message["verb"])
        if verb == "leave":
            self._part.leave(number)
        try:
            if verb == "submit":
                self._submit(number, decode_operation(message))
                return
            if verb == "call":
                value: Any = self.driver.call(decode_operation(message), patience_ns=message["patience_ns"])
                self._part.answer(number, {"ok": True, **value})
                return
            if verb not in self._table:
                raise LabError(f"{verb}: a part has no such verb; both sides need the same vNET")
            value = self._table[verb](message)
        except (LabError, OSError) as error:
            self._part.answer(number, {"ok": False, "error": str(error)})
        except STRANGE as error:
            traceback.print_exc()
            self._part.answer(number, {"ok": False, "error": f"{verb}: {type(error).__name__}: {error}"})
        else:
            self._part.answer(number, {"ok": True, "value": value})

    def end(self) -> list[str]:
        """Ends captures, nodes and driver, and releases the state directory, also after errors; returns the
        error texts.
        """
        if self._opened is None:
            return [] if self._state is None else _tried([self._state.release])
        steps: list[Callable[[], object]] = [one.stop for one in self._captures.values()]
        steps += [lambda: self.driver.destroy(None), self.driver.close]
        errors = _tried(steps)
        return errors + (_tried([self._state.release]) if self._state is not None else [])

    def _begin(self, message: Message) -> dict[str, Any]:
        """Claims the lab's name on this host and opens the driver (`vm` if this host has a VM node, else the
        requested one); offers the delay tables to `tc`; returns the agent's greeting and the machine's facts.
        """
        self._part.agree(message["silence_s"])
        plan = build(Plan, message["plan"])
        self._run_dir = self._part.claim(plan.lab, message["run_dir"])
        self._plan = plan
        self._state = State(self._part.states / plan.lab, plan.lab, "host", self._run_dir)
        about = host_facts(Path("/proc/cpuinfo").read_text(), Path("/proc/meminfo").read_text())
        context = DriverContext(
            plan, self._part.loop, self._state, self._run_dir, AGENT, about.get("mhz") or this_clock_mhz(),
            self._part.event, lambda why: self._part.event({"event": "lost", "why": why}),
            others=tuple(build(Node, node) for node in message["others"]),
        )  # fmt: skip
        self._opened = DRIVERS["vm" if any(n.vm is not None for n in plan.nodes) else message["driver"]](
            context
        )
        greeting = self._opened.open()
        if plan.tables:
            tables.offer(self._state.directory / "tc", plan.tables)
        self._part.loop.clock.offset_ns = int(greeting["clock_offset_ns"])
        return {
            "greeting": greeting,
            "facts": {"name": os.uname().nodename, **about, "address": reached_by()},
        }

    def _create(self, message: Message) -> dict[str, int]:
        return self.driver.create(_nodes(message), message["core"])

    def _apply(self, message: Message) -> None:
        self.driver.apply(build(Step, message["step"]))

    def _change(self, message: Message) -> list[dict[str, Any]]:
        return self.driver.change(build(Step, message["step"]), message["device"])

    def _configure(self, message: Message) -> dict[str, Any]:
        """Configures nodes through the driver and returns what the kernel reads back; then waits up to 10 s
        until wires between nodes of this host forward frames, and raises TimedOut after that.
        """
        read = self.driver.configure(_nodes(message), message["ports"])
        if message["wires"]:
            self._part.loop.until(
                self._part.loop.clock.now_ns() + WIRES_NS, "links between nodes to pass frames",
                lambda: not carriers.not_passing(message["wires"]),
            )  # fmt: skip
        return read

    def _seed(self, message: Message) -> dict[str, int]:
        """Seeds netem in a namespace and returns the seeds read back; returns {} if the driver
        cannot seed.
        """
        driver = self.driver
        return driver.seed(message["netns"], message["seeds"]) if isinstance(driver, Seeder) else {}

    def _limit(self, message: Message) -> dict[str, Any]:
        return self.driver.limit(_nodes(message))

    def _counters(self, message: Message) -> dict[str, operations.Counters]:
        return {node.name: self.driver.counters(node) for node in _nodes(message)}

    def _capture(self, message: Message) -> None:
        """Starts a capture and waits until it captures, with the errors of `await_start`. If the capture ends
        early afterwards, an event `capture-died` is sent.
        """
        name, died = message["name"], list[str]()

        def ended(why: str) -> None:
            died.append(why)
            if self._captures.pop(name, None) is not None:
                self._part.event({"event": "capture-died", "name": name, "why": why})

        process = self.driver.capture(build(Capture, message["capture"]), Path(message["file"]), ended)
        await_start(self._part.loop, name, process, died)
        self._captures[name] = process

    def _capture_stop(self, message: Message) -> dict[str, int]:
        """Stops a capture and returns its counts; raises LabError if the capture has ended before."""
        name = message["name"]
        if name not in self._captures:
            raise LabError(f"capture {name}: ended before")
        return self._captures.pop(name).stop()

    def _power(self, message: Message) -> None:
        self.driver.power(_nodes(message), message["on"])

    def _destroy(self, message: Message) -> None:
        self.driver.destroy(None if message["nodes"] is None else _nodes(message))

    def _reached(self, message: Message) -> list[str]:
        """Returns the limits that a node has reached; empty if the driver sets no limits."""
        node = build(Node, message["node"])
        return self.driver.reached(node) if isinstance(self.driver, Bounded) else []

    def _files(self) -> list[str]:
        """Returns the paths of all files in this host's run directory, relative to it and sorted."""
        return sorted(str(p.relative_to(self._run_dir)) for p in self._run_dir.rglob("*") if p.is_file())

    def _submit(self, number: int, request: operations.Operation[Any]) -> None:
        if isinstance(request, operations.ReadClock):
            self._part.answer(number, {"ok": True, "now_ns": self._part.loop.clock.now_ns()})
        elif isinstance(request, operations.Fetch):
            self._part.answer(number, {"ok": True, **_part_of(Path(request.path), request)})
        else:
            self._execute(number, request)

    def _execute(self, number: int, request: operations.Operation[Any]) -> None:
        if isinstance(request, operations.OfOneExec):
            if request.target not in self._executions:
                raise LabError(f"{request.op}: no running command has id {request.target}")
            object.__setattr__(request, "target", self._executions[request.target])

        def answered(answer: Message) -> None:
            self._executions.pop(number, None)
            self._part.answer(number, answer)

        inner = self.driver.submit(request, answered, lambda event: self._part.event(event, number))
        if isinstance(request, operations.Exec):
            self._executions[number] = inner


def _nodes(message: Message) -> Sequence[Node]:
    return [build(Node, node) for node in message["nodes"]]


def _tried(steps: Sequence[Callable[[], object]]) -> list[str]:
    """Calls all functions in order, also after an error; returns the texts of LabErrors and OSErrors."""
    errors = []
    for step in steps:
        try:
            step()
        except (LabError, OSError) as error:
            errors.append(str(error))
    return errors


def _part_of(path: Path, wanted: operations.Fetch) -> operations.FilePart:
    """Returns the file's size and the requested bytes in base64; the size is None if there is no
    such file.
    """
    try:
        with path.open("rb") as file:
            file.seek(wanted.offset)
            data = file.read(wanted.length)
    except FileNotFoundError:
        return {"size": None}
    return {"size": path.stat().st_size, "data": base64.b64encode(data).decode()}
