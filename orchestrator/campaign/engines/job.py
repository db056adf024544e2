"""Starts the process of one cell on a worker (`campaign/cell.py`); passes events on, and signals to it."""

from __future__ import annotations

import json
import os
import selectors
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from orchestrator.campaign.engines.resident import Resident
from orchestrator.lab.state import Owned, owned

Event = dict[str, Any]
POLL_S = 0.5


class Job:
    """The process of one cell, which `resident` forks, in a separate session, so that Ctrl-C reaches it only
    through `signal`. `told` is the request object that orchestrator.campaign.cell reads. If this process
    ends, the cell's process ends its lab. Its standard error goes to `run_dir`/cell.log.
    """

    def __init__(self, told: dict[str, Any], run_dir: Path, resident: Resident) -> None:
        self._log = run_dir / "cell.log"
        self._partial = b""
        self._result: tuple[str, str | None] | None = None
        self.began = time.monotonic()
        with self._log.open("wb") as log:
            self.process = resident.fork(log)
        self.owned: Owned = owned("cell", self.process.pid)
        self._tell(told)

    def _tell(self, told: dict[str, Any]) -> None:
        try:
            self.process.stdin.write(json.dumps(told).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return  # the job ended at once; its log has the reason

    def follow(self, observe: Callable[[Event], None], poll: Callable[[], None]) -> tuple[str, str | None]:
        """Passes the process's events to `observe` until it ends; returns the cell's state and error or None.

        Calls `poll` after each piece of output, and at least every POLL_S.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            while True:
                if selector.select(POLL_S) and not self._hear(observe):
                    return self._ended()
                poll()

    @property
    def _output(self) -> IO[bytes]:
        return self.process.stdout

    def _hear(self, observe: Callable[[Event], None]) -> bool:
        data = os.read(self._output.fileno(), 65536)
        *whole, self._partial = (self._partial + data).split(b"\n")
        for event in map(json.loads, whole):
            if event.get("event") == "cell-result":
                self._result = (event["state"], event["error"])
            else:
                observe(event)
        return bool(data)

    def _ended(self) -> tuple[str, str | None]:
        """Waits for the process and returns the cell's state and error; `failed` and the last line of its log
        if it has sent no result. Removes an empty log.
        """
        status = self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        text = self._log.read_text(errors="replace").strip()
        if not text:
            self._log.unlink()
        if self._result is not None:
            return self._result
        last = text.splitlines()[-1:] or ["without a word"]
        return "failed", f"its process ended with status {status}: {last[0]}"

    def signal(self, number: int) -> None:
        """Sends the signal `number` to the process if it lives: the first one ends its lab in order, a second
        one by force.
        """
        if self.process.poll() is None:
            self.process.send_signal(number)
