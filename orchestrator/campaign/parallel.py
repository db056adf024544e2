"""Several cells of a campaign side by side, each in a process of its own, all told to one observer.

The next cell begins when one has ended, so the cores stay busy. Every cell in flight is in the journal: a
campaign that is killed loses at most those.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from orchestrator.project import CODE_ROOT

Event = dict[str, Any]
Observe = Callable[[Event], None]
TICK_S = 0.5
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(eq=False)
class Job:
    """One cell in flight. `line`: what the journal says of it; `told`: for orchestrator.campaign.cell."""

    number: int
    line: dict[str, Any]
    told: dict[str, Any]
    began: float = 0.0
    partial: bytes = b""
    result: tuple[str, str | None] | None = None
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def output(self) -> IO[bytes]:
        """Where its events come from."""
        assert self.process.stdout is not None
        return self.process.stdout

    def start(self) -> None:
        """Begin, in a session of its own, so that Ctrl-C reaches it through us only."""
        errors = Path(self.told["run_dir"]) / "cell.log"
        with errors.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "orchestrator.campaign.cell", json.dumps(self.told)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(CODE_ROOT)},
                start_new_session=True,
            )
        self.began = time.monotonic()

    def read(self) -> list[Event] | None:
        """Events that have come; None at the end."""
        data = os.read(self.output.fileno(), 65536)
        if not data:
            self.process.wait()
            return None
        *whole, self.partial = (self.partial + data).split(b"\n")
        return [json.loads(line) for line in whole]

    def ended(self) -> tuple[str, str | None]:
        """State and error; a process that died without its result has failed."""
        log = Path(self.told["run_dir"]) / "cell.log"
        text = log.read_text(errors="replace").strip()
        if not text:
            log.unlink()
        if self.result is not None:
            return self.result
        last = text.splitlines()[-1:] or ["without a word"]
        return "failed", f"its process ended with status {self.process.returncode}: {last[0]}"


def run_side_by_side(
    todo: Iterator[Job], jobs: int, observe: Observe, begin: Callable[[Job], None], end: Callable[[Job], str]
) -> bool:
    """Run all of `todo`, `jobs` at a time; whether it was interrupted. `end` journals one, gives its state.

    Ctrl-C ends the cells in flight and begins no other.
    """
    running: set[Job] = set()
    stopped = False
    with selectors.DefaultSelector() as selector, _presses() as presses:
        while True:
            while not stopped and len(running) < jobs and (job := next(todo, None)) is not None:
                begin(job)
                job.start()
                running.add(job)
                selector.register(job.output, selectors.EVENT_READ, job)
            if not running:
                return stopped
            for key, _ in selector.select(TICK_S):
                if not _hear(key.data, observe):
                    selector.unregister(key.data.output)
                    running.discard(key.data)
                    stopped = end(key.data) == "interrupted" or stopped
            observe({"event": "tick"})
            while presses:
                stopped = True
                _forward(presses.pop(0), running)


def _hear(job: Job, observe: Observe) -> bool:
    """Pass a job's events on; False when it has ended."""
    events = job.read()
    for event in events or []:
        if event.get("event") == "cell-result":
            job.result = (event["state"], event["error"])
        else:
            observe({**event, "number": job.number})
    return events is not None


def _forward(number: int, running: set[Job]) -> None:
    for job in running:
        if job.process.poll() is None:
            job.process.send_signal(number)


@contextmanager
def _presses() -> Iterator[list[int]]:
    presses: list[int] = []
    before = {number: signal.signal(number, lambda n, _: presses.append(n)) for number in STOPS}
    try:
        yield presses
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
