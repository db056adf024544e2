"""Sends events of the machines to the lab in the launcher's format: warnings, states, clocks, starts,
failures and connected clients.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from orchestrator.lab.driver import DriverContext
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.vm.clocks import GuestClock
from orchestrator.lab.vm.guest import GUEST_MESSAGES, Guest
from orchestrator.lab.vm.records import Fetched, Records, appender
from orchestrator.lab.vm.starts import Starts

LIGHT = ""  # key of the launcher of light nodes, beside the machines' names


class HasGuests(Protocol):
    guests: dict[str, Guest]


class Watch:
    """Reports the events of machines, and stores each machine's clock and the files that are
    fetched from it.
    """

    def __init__(self, context: DriverContext) -> None:
        self._at = context
        self._clients: dict[str, tuple[int, int]] = {}
        self._clocks: dict[str, GuestClock] = {}
        self._records: dict[str, Records] = {}
        self._files: dict[str, dict[str, Fetched]] = {}
        self._path: Path | None = None
        self._starts = Starts()

    def light(self, message: Message) -> None:
        """Handles an event of the launcher of light nodes, as `guest` does."""
        self.guest(LIGHT, message)

    def guest(self, name: str, message: Message) -> None:
        """Handles an event of a machine's launcher: sends the sum of connected clients over all launchers,
        and passes other events on unchanged.
        """
        if message.get("event") != "clients":
            self._at.on_event(message)
            return
        self._clients[name] = int(message["connected"]), int(message["total"])
        connected, total = (sum(c[i] for c in self._clients.values()) for i in (0, 1))
        self._at.on_event({"event": "clients", "connected": connected, "total": total})

    def warn(self, code: str, text: str, remedy: str, suspect: bool = True) -> None:
        self._at.on_event(
            {"event": "warning", "code": code, "text": text, "remedy": remedy, "suspect": suspect}
        )

    def state(self, guest: Guest, state: str) -> None:
        """Sets a machine's state and reports it with the present time."""
        guest.state = state
        now = self._at.loop.clock.now_ns()
        told = {"event": "node-state", "node": guest.name, "state": state, "pid": guest.pid, "t_ns": now}
        self._at.on_event(told)

    def died(self, guest: Guest, why: str) -> None:
        """Reports the unexpected end of a machine, with the end of its console; its clients no
        longer count.
        """
        log = [f"QEMU ended ({why})", f"its console ends: {guest.last_words()}"]
        self._clients.pop(guest.name, None)
        self._at.on_event(
            {
                "event": "exited",
                "node": guest.name,
                "software": "agent",
                "status": None,
                "expected": False,
                "log": log,
            }
        )

    def starts(self, starts: Starts) -> None:
        """Adds how machines started, and reports the sum of all for the manifest."""
        self._starts.add(starts)
        self._at.on_event({"event": "starts", "starts": asdict(self._starts)})

    def clock(self, guest: Guest) -> GuestClock:
        """Returns the machine's clock; one without estimates if it has none yet."""
        return self._clocks.setdefault(guest.name, GuestClock())

    def clocks(self) -> dict[str, dict[str, Any]]:
        """Sends the figures of all clocks with an estimate to the lab and returns them by node."""
        facts = {name: clock.facts() for name, clock in self._clocks.items() if clock.estimates}
        self._at.on_event({"event": "clocks", "clocks": facts})
        return facts

    def files(self, guest: Guest) -> list[Fetched]:
        return list(self._files.get(guest.name, {}).values())

    def log(self, guest: Guest, inside: str, path: str) -> None:
        """Registers a program's log for fetching, from `inside` the machine to `path`; does nothing if
        `inside` is registered.
        """
        self._files.setdefault(guest.name, {}).setdefault(inside, Fetched(inside, appender(Path(path))))

    def messages(self, path: Path, fleet: HasGuests) -> None:
        """Registers the message records of the machines that exist now for fetching into `path`."""
        self._path = path
        for guest in fleet.guests.values():
            records = self._records.setdefault(guest.name, Records(self.clock(guest)))
            records.path = path
            files = self._files.setdefault(guest.name, {})
            files.setdefault(GUEST_MESSAGES, Fetched(GUEST_MESSAGES, records.take))

    def anew(self, guest: Guest) -> None:
        """Resets a machine that restarts: drops its clock estimates and clients, and fetches its files from
        their beginning again.
        """
        self.clock(guest).forget()
        self._clients.pop(guest.name, None)
        if guest.name in self._records:
            self._records[guest.name].forget()
        for file in self.files(guest):
            file.offset = 0
