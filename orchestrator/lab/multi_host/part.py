"""The part of a lab on one of its hosts: a process that runs the ordinary driver for the lab process.

The lab process starts it over ssh as `python -m orchestrator.lab.multi_host.part HOME`, from code that was
copied there. On that host the part owns HOME and its lab's state directory (`states`), nothing else. Standard
input and output are its connection: {id, verb, ...} comes in; {id, answer}, {id, event} and {event} go out.
When the connection ends, or is silent for VNET_SILENCE_S (an environment variable of the lab process), the
part removes HOME and everything else of the lab. `... part HOME down` does the same for a part that died.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.lab import cgroup, cleanup, namespaces
from orchestrator.lab.clock import SECOND, MonotonicClock
from orchestrator.lab.errors import Interrupted, LabError
from orchestrator.lab.jsonlines import LineBuffer, Message, encode
from orchestrator.lab.loop import Loop
from orchestrator.lab.multi_host.encoding import BEATS, USUAL_S
from orchestrator.lab.multi_host.verbs import Verbs
from orchestrator.lab.state import Owned, forget_root, owned, state_root
from orchestrator.project import keep_others_out

STDIN, STDOUT = 0, 1
READ_BYTES = 1 << 18
CLAIM = "part.json"  # in HOME, once this part has claimed the lab's name
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
END_S = 90.0  # s; more than all time limits of a teardown together
POLL_S = 0.05


@dataclass(frozen=True)
class Claim:
    """The lab and the process that own a lab's name on this host."""

    lab: str
    process: Owned


class Part:
    """Serves the lab process over one connection, with one loop and one driver."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.loop = Loop(MonotonicClock())
        self.verbs = Verbs(self)
        self._buffer = LineBuffer()
        self._heard = time.monotonic()
        self._silence_s = USUAL_S
        self._beats = self.loop.every(round(USUAL_S / BEATS * SECOND), self._beat)
        # paths of the run directory on the lab's machine and on this host
        self._names: tuple[bytes, bytes] | None = None
        self._last: int | None = None  # the id of the request that ended the part

    def run(self) -> int:
        """Serves until the lab process ends the part or is lost, then removes everything; returns 1 if
        something could not be removed.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda n, _: self.loop.interrupt(Interrupted(signal.Signals(n).name)))
        self.loop.watch(STDIN, self._readable)
        try:
            self.loop.serve()
        except Interrupted as why:
            print(f"ended: {why}", file=sys.stderr)  # noqa: T201  # the part's log at home
        finally:
            self.loop.shield()
            errors = [*self.verbs.end(), *self._remove()]
        for text in errors:
            print(text, file=sys.stderr)  # noqa: T201
        if self._last is not None:
            self.answer(self._last, {"ok": not errors, "error": "; ".join(errors), "value": None})
        return 1 if errors else 0

    @property
    def states(self) -> Path:
        """The directory that contains the lab's state directory."""
        return states(self.home)

    def agree(self, silence_s: float) -> None:
        """Sets the time of silence after which the lab process counts as lost."""
        self._silence_s = silence_s
        self._beats.cancelled = True
        self._beats = self.loop.every(round(silence_s / BEATS * SECOND), self._beat)

    def claim(self, lab: str, run_dir: str) -> Path:
        """Claims the lab's name on this host: makes the run directory in HOME and records the claim there;
        returns the directory. `run_dir` is its path at the lab process. Raises LabError if a namespace or
        control group of that name exists.
        """
        groups = cgroup.lab_groups(cgroup.this_machine(), lab)
        if there := [*map(str, namespaces.of(lab)), *map(str, groups)]:
            raise LabError(
                f"lab {lab}: {there[0]} is there already: another lab of that name, or what a crash left; "
                f"`vnet down {lab}` on that host removes it, --lab NAME gives this one another name"
            )
        here = self.home / "run"
        for directory in ("raw/logs", "pcap"):
            (here / directory).mkdir(parents=True)
        claim = Claim(lab, owned("part", os.getpid()))
        (self.home / CLAIM).write_text(json.dumps(asdict(claim)))
        self._names = (run_dir.encode(), str(here).encode())
        return here

    def leave(self, number: int) -> None:
        """Ends the part by an exception; the request `number` is answered when everything is removed."""
        self._last = number
        raise Interrupted("home has closed the connection")

    def answer(self, number: int, answer: Message) -> None:
        self._send({"id": number, "answer": answer})

    def event(self, event: Message, number: int | None = None) -> None:
        self._send({"event": event} if number is None else {"id": number, "event": event})

    def _send(self, message: Message) -> None:
        line = self._named(encode(message), back=True)
        try:
            while line:
                line = line[os.write(STDOUT, line) :]
        except OSError as error:
            self.loop.interrupt(Interrupted(f"home cannot be reached: {error.strerror}"))

    def _readable(self) -> None:
        chunk = os.read(STDIN, READ_BYTES)
        if not chunk:
            self.loop.unwatch(STDIN)
            self.loop.interrupt(Interrupted("the connection to home ended"))
            return
        self._heard = time.monotonic()
        for message in self._buffer.feed(chunk):
            if "verb" in message:
                self.verbs.carry_out(json.loads(self._named(encode(message))))

    def _beat(self) -> None:
        self._send({"beat": time.time_ns()})
        if time.monotonic() - self._heard > self._silence_s:
            self.loop.interrupt(Interrupted(f"no message from home for {self._silence_s:g} s"))

    def _named(self, line: bytes, back: bool = False) -> bytes:
        """Replaces the path of the run directory in a line by its path on the receiving side."""
        if self._names is None or set(b'"\\') & set(self._names[0]):
            return line
        home, here = self._names
        return line.replace(here, home) if back else line.replace(home, here)

    def _remove(self) -> list[str]:
        """Removes everything that the driver left, found by the lab's name, and then HOME, which stays after
        errors; returns the errors.
        """
        claim, errors = self.home / CLAIM, list[str]()
        if claim.exists():
            lab = json.loads(claim.read_text())["lab"]
            errors = _destroy(lab, self.home)
        if not errors and self.home.exists():
            shutil.rmtree(self.home)
        return errors


def states(home: Path) -> Path:
    """Returns the directory that contains the lab's state directory; `vnet ls` on that host does not list it.

    It is not in HOME, because libvirt's sockets need short paths and QEMU's account cannot enter HOME.
    """
    return state_root() / f".{hashlib.sha256(os.fsencode(home)).hexdigest()[:8]}"


def _destroy(lab: str, home: Path) -> list[str]:
    """Removes everything of that lab on this host; returns the errors."""
    above = states(home)
    errors = cleanup.destroy(lab, above).errors
    if errors or not above.exists():
        return errors
    try:
        above.rmdir()
    except OSError as error:
        return [f"{above}: {error.strerror}"]
    forget_root(above.parent)
    return []


def down(home: Path) -> int:
    """Ends a part that still runs with SIGTERM, and waits up to END_S for its end; then removes everything
    that it left, and HOME. Returns 1, and prints the errors, if something could not be removed.
    """
    claim = home / CLAIM
    if claim.exists():
        told: dict[str, Any] = json.loads(claim.read_text())
        process = Owned(**told["process"])
        if process.alive:
            os.kill(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + END_S
        while process.alive and time.monotonic() < deadline:
            time.sleep(POLL_S)  # waits until the other part has ended; the deadline is checked above
        if home.exists() and (errors := _destroy(told["lab"], home)):
            print("; ".join(errors), file=sys.stderr)  # noqa: T201  # ssh carries it home
            return 1
    if home.exists():
        shutil.rmtree(home)
    return 0


VERBS: dict[str, Callable[[Path], int]] = {"run": lambda home: Part(home).run(), "down": down}


def main(argv: Sequence[str]) -> int:
    """Runs the command `HOME [run | down]`."""
    keep_others_out()
    os.environ["PATH"] = PATH
    home = Path(argv[0])
    verb = argv[1] if len(argv) > 1 else "run"
    if verb == "run":
        home.mkdir(parents=True, mode=0o755)
    return VERBS[verb](home)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
