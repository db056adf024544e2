"""The process that owns a lab on another machine: carries it there, its events and control socket here.

Started by kernel.py as `python -m orchestrator.kernel.remote.owner ERRAND_JSON`. Standard output: the lab's
JSON lines. Exit status: that of the lab process; 1 where it was lost. End of file on standard input means
that the command that wanted this run is gone: the lab is interrupted.

Where the way home fails, the state directory stays, and `vnet down` goes it again.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
import signal
import sys
from pathlib import Path

from orchestrator.kernel.owning import ENDINGS, emit, emit_end
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.remote import stage
from orchestrator.kernel.remote.errand import FILE, LAUNCH, Errand, Start, read
from orchestrator.kernel.remote.home import blame, come_home, fetch
from orchestrator.kernel.remote.line import FarLine
from orchestrator.kernel.remote.ssh import LOST, Connection
from orchestrator.lab.errors import Interrupted, LabError
from orchestrator.lab.state import State, replace
from orchestrator.model import Plan, codec


class RemoteOwner:
    """One lab from the first connection to its run directory here, in one thread.

    `away`: whether something of it is there; while it is, the state directory must stay.
    """

    def __init__(self, errand: Errand, state: State) -> None:
        self.errand = errand
        self.state = state
        self.run_dir = Path(errand.run_dir)
        self.connection = Connection(errand.machine, state.directory)
        self.line = FarLine(errand, state.directory / "control.sock")
        self.away = False

    def run(self) -> int:
        """The lab's exit status; KernelError, OSError or Interrupted where it was lost or never began."""
        try:
            self._carry()
            self._serve()
            fetch(self.connection, self.errand)
        except (KernelError, OSError, Interrupted) as error:
            self.connection.close()
            if self.away:
                self._salvage(error)
            raise
        self.away = False
        self.connection.close()
        status = self.line.status or 0
        emit(self.line.end or json.dumps({"event": "end", "status": status}))
        return status

    def _carry(self) -> None:
        """Everything that the lab needs, and last what it is told."""
        errand, plan = self.errand, codec.from_json(Plan, (self.run_dir / "plan.json").read_text())
        self._phase("stage", f"to {errand.account.name}")
        self.state.record("ssh", self.connection.open())
        for cargo in stage.images(errand.account, plan):
            self._phase("stage", f"{Path(cargo.target).name}, {cargo.size / 1e6:.0f} MB")
            stage.carry(self.connection, errand.account, cargo)
        there = stage.with_images_there(errand.account, plan)
        start = Start(
            errand.kernel,
            errand.why,
            errand.machine.url,
            errand.run_there,
            errand.state,
            errand.scenario,
            errand.keep,
        )
        told = json.dumps({"start": dataclasses.asdict(start), "plan": dataclasses.asdict(there)}).encode()
        home = shlex.quote(errand.home)
        script = f"umask 077; mkdir -p {home} && cat > {home}/{LAUNCH}"
        self.away = True
        self.connection.run(errand.account.shell(script), lambda out: out.write(told), what=errand.home)

    def _serve(self) -> None:
        """Be at home until the lab has ended; KernelError where it is lost before that."""
        command = self.errand.account.program(self.errand.code, "run", self.errand.home)
        ended = self.line.serve(lambda side: self.connection.popen(command, side, side, None))
        if self.line.status is None:
            raise KernelError(self._why_lost(ended))
        self._phase("fetch", f"the run from {self.errand.account.name}")

    def _phase(self, name: str, text: str) -> None:
        emit(json.dumps({"event": "phase", "phase": name, "done": 0, "total": 0, "text": text}))

    def _why_lost(self, status: int) -> str:
        if status == LOST and (why := self.connection.lost()):
            return why
        log = self.run_dir / "raw" / "remote.log"
        words = " / ".join(log.read_text(errors="replace").split("\n")[-4:]).strip(" /")
        words = words or "it said no word"
        return f"{self.errand.machine.url}: the lab's owner there ended with status {status}: {words}"

    def _salvage(self, why: Exception) -> None:
        """Another try of the way home; where it fails, the reason stands behind the first."""
        emit(json.dumps({"event": "error", "text": str(why)}))
        self._phase("fetch", "what was measured until then")
        try:
            with Connection(self.errand.machine, self.state.directory) as again:
                come_home(again, self.errand)
        except (KernelError, OSError) as error:
            name = self.errand.account.name
            raise KernelError(
                f"{error}; the lab ends by itself on {name}, and what it measured waits there: "
                f"`vnet down {self.errand.state}` brings it here"
            ) from error
        self.away = False
        if not isinstance(why, Interrupted):
            blame(self.run_dir, str(why))


def main() -> int:
    """Own the lab that the file (argument 1) describes."""
    errand = codec.from_json(Errand, Path(sys.argv[1]).read_text())
    state_dir = Path(errand.state_dir)
    for number in ENDINGS:
        signal.signal(number, _interrupted)
    try:
        state = State(state_dir, errand.lab, errand.machine.url, Path(errand.run_dir))
        if (earlier := read(state_dir)) is not None:
            raise LabError(
                f"lab {errand.lab}: what an earlier one measured is still on {earlier.account.name}; "
                f"`vnet down {errand.state}` brings it here"
            )
    except (LabError, KernelError) as error:
        emit_end(str(error), 1)
        return 1
    replace(state_dir / FILE, codec.to_json(errand))
    owner = RemoteOwner(errand, state)
    try:
        return owner.run()
    except (KernelError, OSError) as error:
        emit_end(str(error), 1)
        return 1
    except Interrupted as why:
        emit_end(f"interrupted ({why})", 130)
        return 130
    finally:
        if not owner.away:
            state.release()


def _interrupted(number: int, _: object) -> None:
    raise Interrupted(signal.Signals(number).name)


if __name__ == "__main__":
    sys.exit(main())
