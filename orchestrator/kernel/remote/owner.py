"""The process that owns a lab on another machine: copies the lab there, and carries its events and control
socket here.

kernel.py starts it as `python -m orchestrator.kernel.remote.owner FILE`. Standard output: the lab's JSON
lines. Exit status: that of the lab process; 1 if the lab was lost. End of file on standard input means that
the command that wanted this run is gone; the lab is then interrupted.

If fetching the results fails, the state directory stays, and `vnet down` fetches them again.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
import signal
import sys
from pathlib import Path

from contract import codec, rundir
from orchestrator.kernel.owning import ENDINGS, emit, emit_end
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.remote import stage
from orchestrator.kernel.remote.home import blame, come_home, fetch
from orchestrator.kernel.remote.line import RemoteConnection
from orchestrator.kernel.remote.remote_lab import FILE, LAUNCH, RemoteLab, Start, read
from orchestrator.kernel.remote.ssh import LOST, Connection
from orchestrator.lab.errors import Interrupted, LabError
from orchestrator.lab.state import State, replace


class RemoteOwner:
    """Owns one lab from the first connection until its run directory is here, in one thread.

    away: True while something of the lab is on the other machine; the state directory must stay so long.
    """

    def __init__(self, remote_lab: RemoteLab, state: State) -> None:
        self.remote_lab = remote_lab
        self.state = state
        self.run_dir = Path(remote_lab.run_dir)
        self.connection = Connection(remote_lab.machine, state.directory)
        self.line = RemoteConnection(remote_lab, state.directory / "control.sock")
        self.away = False

    def run(self) -> int:
        """Runs the lab and returns its exit status; raises KernelError, OSError or Interrupted if the lab was
        lost or never began.
        """
        try:
            self._carry()
            self._serve()
            fetch(self.connection, self.remote_lab)
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
        """Copies everything that the lab needs to the other machine, the start file last."""
        remote_lab, plan = self.remote_lab, rundir.read_plan(self.run_dir)
        self._phase("stage", f"to {remote_lab.account.name}")
        self.state.record("ssh", self.connection.open())
        for upload in stage.images(remote_lab.account, plan):
            self._phase("stage", f"{Path(upload.target).name}, {upload.size / 1e6:.0f} MB")
            stage.carry(self.connection, remote_lab.account, upload)
        there = stage.with_images_there(remote_lab.account, plan)
        start = Start(
            remote_lab.kernel,
            remote_lab.why,
            remote_lab.machine.url,
            remote_lab.run_there,
            remote_lab.state,
            remote_lab.scenario,
            remote_lab.keep,
        )
        told = json.dumps({"start": dataclasses.asdict(start), "plan": dataclasses.asdict(there)}).encode()
        home = shlex.quote(remote_lab.home)
        script = f"umask 077; mkdir -p {home} && cat > {home}/{LAUNCH}"
        self.away = True
        self.connection.run(
            remote_lab.account.shell(script), lambda out: out.write(told), what=remote_lab.home
        )

    def _serve(self) -> None:
        """Serves events and clients until the lab has ended; raises KernelError if the lab is lost before
        that.
        """
        command = self.remote_lab.account.program(self.remote_lab.code, "run", self.remote_lab.home)
        ended = self.line.serve(lambda side: self.connection.popen(command, side, side, None))
        if self.line.status is None:
            raise KernelError(self._why_lost(ended))
        self._phase("fetch", f"the run from {self.remote_lab.account.name}")

    def _phase(self, name: str, text: str) -> None:
        emit(json.dumps({"event": "phase", "phase": name, "done": 0, "total": 0, "text": text}))

    def _why_lost(self, status: int) -> str:
        if status == LOST and (why := self.connection.lost()):
            return why
        log = self.run_dir / "raw" / "remote.log"
        words = " / ".join(log.read_text(errors="replace").split("\n")[-4:]).strip(" /")
        words = words or "it printed no reason"
        return f"{self.remote_lab.machine.url}: the lab's owner there ended with status {status}: {words}"

    def _salvage(self, why: Exception) -> None:
        """Emits the error, ends the lab and fetches its results over a new connection; then records the
        failure in the manifest, unless the lab was interrupted. Raises KernelError if the connection fails
        again.
        """
        emit(json.dumps({"event": "error", "text": str(why)}))
        self._phase("fetch", "the measurements until then")
        try:
            with Connection(self.remote_lab.machine, self.state.directory) as again:
                come_home(again, self.remote_lab)
        except (KernelError, OSError) as error:
            name = self.remote_lab.account.name
            raise KernelError(
                f"{error}; the lab ends by itself on {name}, and what it measured waits there: "
                f"`vnet down {self.remote_lab.state}` brings it here"
            ) from error
        self.away = False
        if not isinstance(why, Interrupted):
            blame(self.run_dir, str(why))


def main() -> int:
    """Owns the lab that the file (argument 1) describes; returns the exit status."""
    remote_lab = codec.from_json(RemoteLab, Path(sys.argv[1]).read_text())
    state_dir = Path(remote_lab.state_dir)
    for number in ENDINGS:
        signal.signal(number, _interrupted)
    try:
        state = State(state_dir, remote_lab.lab, remote_lab.machine.url, Path(remote_lab.run_dir))
        if (earlier := read(state_dir)) is not None:
            raise LabError(
                f"lab {remote_lab.lab}: what an earlier one measured is still on {earlier.account.name}; "
                f"`vnet down {remote_lab.state}` brings it here"
            )
    except (LabError, KernelError) as error:
        emit_end(str(error), 1)
        return 1
    replace(state_dir / FILE, codec.to_json(remote_lab))
    owner = RemoteOwner(remote_lab, state)
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
