"""Snapshots of machines: memory saved to a file, disk copied beside it, and the return to both.

A transient domain keeps no snapshots of its own: saving ends it, and it goes on from the file written.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from orchestrator.lab.clock import SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.launcher import Launcher
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import Hello
from orchestrator.lab.vm.dialogue import Dialogue, ask, together
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.machines import Machines
from orchestrator.lab.vm.resume import resumed
from orchestrator.lab.vm.watch import Watch
from orchestrator.lab.vm.workers import Workers

PATIENCE_NS = 120 * SECOND
TAKEN = "disk"


class Snapshots:
    """Kept in the machines' own directories: they end with the lab."""

    def __init__(
        self, loop: Loop, workers: Workers, machines: Machines, connect: Callable[[Guest], Launcher],
        watch: Watch, meant: set[str], running: Callable[[Guest], None],
    ) -> None:  # fmt: skip
        self._loop, self._workers, self._machines = loop, workers, machines
        self._connect, self._watch, self._meant, self._running = connect, watch, meant, running

    def take(self, guests: Sequence[Guest], name: str) -> None:
        """Saves all machines in parallel, then restores all."""
        if name == TAKEN:
            raise LabError(f"snapshot {name}: {name}.qcow2 is the machine's own disk; take another name")
        if off := [g.name for g in guests if not g.ready]:
            raise LabError(f"snapshot {name}: nodes.{off[0]}: does not run; `vnet start` boots it")
        self._each(guests, f"snapshot {name}", lambda g: self._save(g, name))

    def revert(self, guests: Sequence[Guest], name: str) -> None:
        """Ends the running machines and restores the snapshot."""
        if missing := [g.name for g in guests if not _memory(g, name).exists()]:
            raise LabError(
                f"revert: nodes.{missing[0]}: has no snapshot {name}; take one with `vnet snapshot`"
            )
        self._each(guests, f"return to {name}", lambda g: self._return(g, name))

    def _each(self, guests: Sequence[Guest], subject: str, work: Callable[[Guest], None]) -> None:
        for guest in guests:
            self._meant.add(guest.name)
            if guest.channel is not None:
                guest.channel.expect_end()
                guest.channel.close()
        jobs = [partial(work, g) for g in guests]
        futures = self._workers.together(subject, PATIENCE_NS, jobs)
        errors = [str(e) for f in futures if (e := f.exception()) is not None]
        if errors:
            raise LabError("; ".join(errors))
        for guest in guests:
            guest.channel = self._connect(guest)
            self._meant.discard(guest.name)
            self._watch.clock(guest).forget()
            self._running(guest)
            self._watch.state(guest, "running")
        dialogues = [(guest, self._greeted()) for guest in guests]
        _, wrong = together(self._loop, f"agents after {subject}", PATIENCE_NS, dialogues)
        if wrong:
            raise LabError("; ".join(f"nodes.{node}: {subject}: {why}" for node, why in wrong.items()))

    def _greeted(self) -> Dialogue[None]:
        yield from ask(Hello())
        yield from resumed(self._loop.clock)

    def _save(self, guest: Guest, name: str) -> None:
        self._machines.save(guest, _memory(guest, name))
        _copy(guest.directory / "disk.qcow2", _disk(guest, name))
        guest.domain = self._machines.restore(guest, _memory(guest, name))

    def _return(self, guest: Guest, name: str) -> None:
        self._machines.destroy(guest)
        _copy(_disk(guest, name), guest.directory / "disk.qcow2")
        guest.domain = self._machines.restore(guest, _memory(guest, name))


def _memory(guest: Guest, name: str) -> Path:
    return guest.directory / f"{name}.memory"


def _disk(guest: Guest, name: str) -> Path:
    return guest.directory / f"{name}.qcow2"


def _copy(source: Path, target: Path) -> None:
    if source.exists():
        shutil.copyfile(source, target)
