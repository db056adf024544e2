"""Serves those who look into a lab whose clock stands: their requests arrive in files of the run directory.

While somebody looks, the lab process never waits, so that the clock cannot jump, and everything that serves
the visitor runs with real-time priorities, so that no program of a node runs. The run is marked: it does not
repeat.
"""

from __future__ import annotations

import base64
import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.lab import Lab
from orchestrator.lab.pauses import FIRST, PLACE, SECOND_CLASS, Keeper, Pause, order_name
from orchestrator.lab.serve import Client, Server
from orchestrator.lab.visitors import Visitors

READ_BYTES = 256
SHOWN = 60  # characters of a request in the mark
NEEDS_TIME = ("software", "node", "add", "remove", "snapshot", "revert", "measure", "watch")
# Requests that belong to another one, which has the mark.
PARTS = ("input", "resize", "signal", "fetch", "status")


class Visits:
    """The looks into one lab. `begin` names the moments at which its clock stands."""

    def __init__(self, lab: Lab, keeper: Keeper, pauses: list[Pause]) -> None:
        self._lab = lab
        self._keeper = keeper
        self._pauses = pauses
        self._place = lab.run_dir / PLACE
        self._visitors = Visitors(lab)
        self._server = Server(lab, self._visitors, self._asked)
        self._inputs: dict[int, Input] = {}
        self._file = 0
        self._answers = 0
        self._at = ""
        self._order: dict[str, Any] | None = None

    def begin(self, t0_ns: int) -> None:
        """Tells the keeper of the clock the moments, for a scenario that starts at `t0_ns`."""
        plan, clock = self._lab.plan, self._lab.loop.clock
        starts = {"ramp": 0, "hold": plan.ramp_ns, "drain": plan.ramp_ns + plan.hold_ns}
        stops = sorted(t0_ns + starts[one.phase] + one.at_ns for one in self._pauses)
        self._lab.loop.watch(self._keeper.calls, self._called)
        self._keeper.begin(stops, clock.offset_ns)

    def end(self) -> None:
        """Ends the keeper of the clock; call it before the lab is taken away."""
        self._lab.loop.unwatch(self._keeper.calls)
        self._keeper.end()

    def _called(self) -> None:
        """Serves visitors until the owner lets the clock move again."""
        file, at_ns = os.read(self._keeper.calls, READ_BYTES).split()
        self._file, self._order = int(file), None
        self._at = f"{(int(at_ns) - (self._lab.manifest.t0_ns or 0)) / 1e9:.3f} s of the scenario"
        loop = self._lab.loop
        with real_time(Path("/proc")):
            loop.standing = self._look
            try:
                while self._order is None:
                    loop.turn_standing()
            finally:
                loop.standing = None
        if self._order["go"] == "continue":
            self._visitors.end()
        self._keeper.go_on(self._order, self._file)

    def _look(self) -> None:
        """Takes the next file of the owner, if there is one, and feeds what clients sent before."""
        for one in list(self._inputs.values()):
            one.push()
        path = self._place / order_name(self._file)
        if not path.exists():
            return
        self._file += 1
        for line in path.read_text().splitlines():
            self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        if "order" in line:
            self._order = line["order"]
            return
        number = int(line["client"])
        if line.get("closed"):
            if (gone := self._inputs.pop(number, None)) is not None:
                gone.close()
            return
        if number not in self._inputs:
            self._inputs[number] = made = Input()
            self._server.admit(Client(made.read, self._writer(number), lambda: os.close(made.read)))
        self._inputs[number].add(base64.b64decode(line["data"]))

    def _writer(self, number: int) -> Callable[[bytes], object]:
        """Returns a function that sends bytes to client `number` of the owner."""

        def write(data: bytes) -> None:
            name = f"out-{self._answers}"
            self._answers += 1
            part = self._place / f"{name}.part"
            part.write_text(json.dumps({"client": number, "data": base64.b64encode(data).decode()}))
            part.rename(self._place / name)

        return write

    def _asked(self, op: str, message: Message) -> None:
        """Marks the run with a request, before it is served; raises LabError for one that needs time."""
        if op in NEEDS_TIME:
            raise LabError(
                f"{op}: the lab's clock stands, and this needs it to move; put it into the file's timeline, "
                "or write `vnet continue`"
            )
        if op in PARTS:
            return
        words = " ".join(map(str, message.get("argv") or [])) or str(message.get("link") or "")
        where = str(message.get("node") or "")
        said = " ".join(word for word in (op, where, words[:SHOWN]) if word)
        self._lab.events.warn(Warning(
            "by-hand", f"somebody looked into the lab at {self._at}: {said}",
            "for figures, run it again without `--pause-at`: that run repeats", suspect=False,
        ))  # fmt: skip


class Input:
    """The bytes of one client on their way to the server: a pipe that is never waited for."""

    def __init__(self) -> None:
        self.read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._waiting: deque[bytes] = deque()
        self._closing = False

    def add(self, data: bytes) -> None:
        self._waiting.append(data)
        self.push()

    def push(self) -> None:
        """Writes what the pipe takes."""
        while self._waiting:
            try:
                sent = os.write(self._write, self._waiting[0])
            except BlockingIOError:
                return
            except BrokenPipeError:
                self._waiting.clear()
                return
            rest = self._waiting.popleft()[sent:]
            if rest:
                self._waiting.appendleft(rest)

    def close(self) -> None:
        """Ends the input after what was added."""
        self.push()
        os.close(self._write)


class real_time:  # noqa: N801  # reads as a word in a `with` statement
    """While the context lasts, every process outside of the nodes has a real-time priority, this one the
    lowest: so it serves whenever no other one wants to run, and no node's program runs.
    """

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._changed: list[int] = []

    def __enter__(self) -> None:
        for task in tasks_outside(self._proc):
            try:
                if os.sched_getscheduler(task) == os.SCHED_OTHER:
                    level = FIRST if task == os.getpid() else SECOND_CLASS
                    os.sched_setscheduler(task, os.SCHED_FIFO, os.sched_param(level))
                    self._changed.append(task)
            except ProcessLookupError:
                continue

    def __exit__(self, *_: object) -> None:
        for task in self._changed:
            try:
                os.sched_setscheduler(task, os.SCHED_OTHER, os.sched_param(0))
            except ProcessLookupError:
                continue


def tasks_outside(proc: Path) -> Iterator[int]:
    """Yields the threads of all processes that have this process's host name: the kernel's own, and those
    that build and observe the lab.
    """
    own = (proc / "self/ns/uts").readlink()
    for entry in sorted(int(one.name) for one in proc.iterdir() if one.name.isdigit()):
        try:
            if (proc / str(entry) / "ns/uts").readlink() == own:
                yield from (int(one.name) for one in (proc / str(entry) / "task").iterdir())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
