"""Owner's side of a lab whose clock stands: stops the guest, takes requests at the lab's control socket, and
passes them to the guest by files of the run directory.

The guest announces by a directory that its clock stands, and then only looks for the next file
(orchestrator/lab/pauses.py). Until there is one, the owner stops its processes (SIGSTOP), so that they take
no CPU time. `continue`, `step` and `status` are answered here: they leave no trace in the run.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract import rundir
from contract.plan import Plan
from orchestrator.lab.jsonlines import LineBuffer, Message, encode
from orchestrator.lab.pauses import PLACE, Pause, order_name

READ_BYTES = 32768
SEND_S = 5.0
BUSY_S = 0.5  # how long the guest runs after the last line of a visitor or of itself
SLICE_S = 0.02  # and how long in each turn while a command of a visitor only waits
TURN_S, BUSY_TURN_S = 0.1, 0.01
LONGEST_STEP_NS = 3600 * 1_000_000_000
OWN = ("status", "continue", "step")


@dataclass
class Visitor:
    """A client of the control socket; `open`: its requests that the guest has not answered."""

    connection: socket.socket
    buffer: LineBuffer = field(default_factory=LineBuffer)
    open: set[Any] = field(default_factory=set)


class Standing:
    """Everything that the owner does for pauses. Call `turn` again and again; `stands` says whether the clock
    stands now.
    """

    def __init__(
        self,
        guest: int,
        run_dir: Path,
        control: Path,
        pauses: list[Pause],
        tell: Callable[[dict[str, Any]], None],
    ) -> None:
        self._guest, self._run_dir, self._tell = guest, run_dir, tell
        self._place = run_dir / PLACE
        self._place.mkdir(parents=True)
        self._plan: Plan = rundir.read_plan(run_dir)
        self._left = sorted(pauses, key=lambda one: (self._offset(one), one.said))
        self._control = control
        self._listener = _listen(control)
        self._visitors: dict[int, Visitor] = {}
        self._last = 0
        self._stops = self._files = self._answers = 0
        self._held = False
        self._busy_until = 0.0
        self._waiting: list[tuple[int, Any]] = []  # who waits for the end of a step
        self._queue: deque[tuple[int, Message]] = deque()
        self._gone: deque[int] = deque()
        self._step_end = False
        self.at_ns = 0
        self.said = ""
        self.stands = False

    def turn(self) -> None:
        """Serves the control socket and the guest once; waits up to TURN_S."""
        self._arrive()
        self._collect()
        wait_s = BUSY_TURN_S if self._busy() else TURN_S
        if self.stands and not self._busy():
            if any(one.open for one in self._visitors.values()):
                self._hold(False)
                time.sleep(SLICE_S)
                self._collect()
            self._hold(True)
        ready, _, _ = select.select([self._listener, *self._connections()], [], [], wait_s)
        for one in ready:
            if one is self._listener:
                self._accept()
            else:
                self._read(next(n for n, v in self._visitors.items() if v.connection is one))

    def end(self) -> None:
        """Closes the socket and removes the mail; tells the pauses that never came."""
        for number in list(self._visitors):
            self._drop(number)
        self._listener.close()
        self._control.unlink(missing_ok=True)
        shutil.rmtree(self._place, ignore_errors=True)
        if self._left:
            self._tell({"event": "unreached", "pauses": [one.said for one in self._left]})

    def _connections(self) -> list[socket.socket]:
        return [one.connection for one in self._visitors.values()]

    def _offset(self, pause: Pause) -> int:
        plan = self._plan
        return {"ramp": 0, "hold": plan.ramp_ns, "drain": plan.ramp_ns + plan.hold_ns}[
            pause.phase
        ] + pause.at_ns

    def _busy(self) -> bool:
        return time.monotonic() < self._busy_until

    def _hold(self, hold: bool) -> None:
        if hold != self._held:
            os.kill(self._guest, signal.SIGSTOP if hold else signal.SIGCONT)
            self._held = hold

    def _arrive(self) -> None:
        """Notices that the clock stands at the next moment."""
        if self.stands:
            return
        found = next(self._place.glob(f"at-{self._stops + 1}-*"), None)
        if found is None:
            return
        self._stops += 1
        self.at_ns, self.stands = int(found.name.rpartition("-")[2]), True
        if self._step_end or not self._left:
            self.said = "the end of the step"
        else:
            self.said = self._left.pop(0).said
        self._step_end = False
        found.rmdir()
        for number, request in self._waiting:
            self._answer(number, {"id": request, "ok": True, **self._where()})
        self._waiting.clear()
        self._tell({"event": "paused", "lab": self._plan.lab, **self._where()})
        while self.stands and self._queue:
            self._take(*self._queue.popleft())
        self._hang_up()

    def _where(self) -> dict[str, Any]:
        return {"at": self.said, "at_ns": self.at_ns, "since_start_ns": self.at_ns - self._plan.clock_ns}

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(SEND_S)
        self._last += 1
        self._visitors[self._last] = Visitor(connection)

    def _read(self, number: int) -> None:
        one = self._visitors[number]
        try:
            data = one.connection.recv(READ_BYTES)
            messages = one.buffer.feed(data)
        except (OSError, ValueError):
            data = b""
        if not data:
            self._drop(number)
            return
        for message in messages:
            if number in self._visitors:
                self._take(number, message)

    def _take(self, number: int, message: Message) -> None:
        op, request = message.get("op"), message.get("id")
        if op == "status":
            self._answer(number, {"id": request, "ok": True, **self._status()})
        elif not self.stands:
            if op in ("input", "resize", "signal"):
                self._queue.append((number, message))
                return
            coming = self._left[0].said if self._left else "none: all pauses are over"
            error = f"{op}: the lab's clock moves; it takes requests only while it stands (next: {coming})"
            self._answer(number, {"id": request, "ok": False, "error": error})
        elif op in ("continue", "step"):
            self._go(number, message)
        else:
            if op not in ("input", "resize", "signal"):
                self._visitors[number].open.add(request)
            self._mail({"client": number, "data": base64.b64encode(encode(message)).decode()})

    def _go(self, number: int, message: Message) -> None:
        """Lets the clock move: to the next pause or the end, or for a step."""
        request, op = message.get("id"), message["op"]
        order: dict[str, Any] = {"go": op}
        if op == "step":
            length = message.get("ns")
            if not isinstance(length, int) or not 0 < length <= LONGEST_STEP_NS:
                error = f"step: ns: {length}: give 1 ns to 1 h"
                self._answer(number, {"id": request, "ok": False, "error": error})
                return
            order["ns"] = length
            self._step_end = not self._left or length <= self._next_ns() - self.at_ns
            self._waiting.append((number, request))
        where = self._where()
        self.stands = False
        self._mail({"order": order})
        self._tell({"event": "moving", "how": op})
        if op == "continue":
            self._answer(number, {"id": request, "ok": True, **where})

    def _next_ns(self) -> int:
        """Returns the lab time of the next pause that was asked for."""
        from contract import manifest

        return int(manifest.load(self._run_dir).t0_ns or 0) + self._offset(self._left[0])

    def _status(self) -> dict[str, Any]:
        plan = self._plan
        phase = f"stands at {self.said}" if self.stands else "the clock moves"
        return {
            "lab": plan.lab, "ready": True, "phase": phase, "driver": "light",
            "run_dir": str(self._run_dir), "nodes": len(plan.nodes), "links": len(plan.links),
            "kernel": {"kind": "uml", "time": "virtual"}, "state": "running", "warnings": [], "connected": 0,
            "serving": False, "groups": {node.name: node.group for node in plan.nodes},
            "stands": self._where() if self.stands else None,
        }  # fmt: skip

    def _mail(self, line: dict[str, Any]) -> None:
        """Passes a line to the guest, and lets the guest run."""
        path = self._place / order_name(self._files)
        self._files += 1
        part = path.with_suffix(".part")
        part.write_text(json.dumps(line) + "\n")
        part.rename(path)
        self._busy_until = time.monotonic() + BUSY_S
        self._hold(False)

    def _collect(self) -> None:
        """Passes the guest's lines to its visitors."""
        while (path := self._place / f"out-{self._answers}").exists():
            line = json.loads(path.read_text())
            path.unlink()
            self._answers += 1
            self._busy_until = time.monotonic() + BUSY_S
            number = int(line["client"])
            if number not in self._visitors:
                continue
            data = base64.b64decode(line["data"])
            found = json.loads(data)
            if "ok" in found and "event" not in found:
                self._visitors[number].open.discard(found.get("id"))
            self._send(number, data)

    def _answer(self, number: int, message: Message) -> None:
        self._send(number, encode(message))

    def _send(self, number: int, data: bytes) -> None:
        if number not in self._visitors:
            return
        try:
            self._visitors[number].connection.sendall(data)
        except OSError:
            self._drop(number)

    def _drop(self, number: int) -> None:
        one = self._visitors.pop(number, None)
        if one is None:
            return
        one.connection.close()
        if one.open:
            self._gone.append(number)
            self._hang_up()

    def _hang_up(self) -> None:
        """Tells the guest which visitors with running commands have gone; waits until its clock stands."""
        while self.stands and self._gone:
            self._mail({"client": self._gone.popleft(), "closed": True})


def _listen(control: Path) -> socket.socket:
    """Returns a socket that listens at `control`, to which only this user can connect."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(control))
    finally:
        os.umask(before)
    listener.listen(16)
    return listener
