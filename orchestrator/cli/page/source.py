"""Reads the data of a watched lab from its control socket or, in virtual time, from the files of its run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Protocol

from contract import rundir
from orchestrator.cli.control import ControlError, Message
from orchestrator.cli.page.connection import Connection, Listener
from orchestrator.cli.page.network import planned
from orchestrator.cli.page.tail import Tail
from orchestrator.lab.errors import LabError
from orchestrator.lab.files import part
from orchestrator.lab.state import read_lab


class Source(Protocol):
    """Answers operations that read a lab; `closed` is set when the lab ends."""

    closed: asyncio.Event

    async def call(self, op: str, **fields: Any) -> Message:
        """Returns the answer to an operation; ControlError if it is refused."""

    async def close(self) -> None:
        """Closes the source."""


async def source(state_dir: Path, on_event: Listener) -> Source:
    """Opens the source of a running lab: its run directory in virtual time, else its control socket; passes
    the lab's events to `on_event`. Raises ControlError with a remedy if there is no such lab or it has died.
    """
    about = read_lab(state_dir)
    if not about:
        raise ControlError(f"lab {state_dir.name}: no such lab runs here; `vnet up FILE` starts one")
    if about.get("time") == "virtual":
        return Files(Path(about["run_dir"]), on_event)
    if "died" in about:
        raise ControlError(
            f"lab {state_dir.name}: died: {about['died']}; `vnet down {state_dir.name}` clears it"
        )
    return await Connection.open(state_dir / "control.sock", on_event)


class Files:
    """Answers `fetch`, `inspect` and `status` from the run directory of a lab in virtual time, which must not
    be queried.
    """

    def __init__(self, run_dir: Path, on_event: Listener) -> None:
        self._run_dir, self._on_event = run_dir, on_event
        self._progress = Tail("raw/progress.jsonl", whole=True)
        self._ready = False
        self._phase = "create"
        self.closed = asyncio.Event()

    async def call(self, op: str, **fields: Any) -> Message:
        if op == "fetch":
            try:
                return part(self._run_dir, fields["path"], fields["offset"], fields.get("length"))
            except (LabError, OSError) as error:
                raise ControlError(str(error)) from error
        if op == "inspect":
            try:
                return planned(rundir.read_plan(self._run_dir))
            except rundir.UnreadableError as error:
                raise ControlError(str(error)) from error
        if op == "status":
            await self._read()
            return {"ready": self._ready, "phase": self._phase, "run_dir": str(self._run_dir), "warnings": []}
        return {}

    async def close(self) -> None:
        self.closed.set()

    async def _read(self) -> None:
        async def fetch(**fields: Any) -> Message:
            return await self.call("fetch", **fields)

        for line in await self._progress.lines(fetch):
            try:
                event = json.loads(line)
            except ValueError:
                continue  # the line is not JSON, so the machine wrote it and not the lab
            if event.get("event") == "phase":
                self._phase = event["phase"]
            self._ready = self._ready or event.get("event") == "ready"
            self._on_event(event)
            if event.get("event") == "end":
                self.closed.set()
