"""Takes snapshots of machines (memory saved to a file, disk copied to another) and reverts machines to them.

libvirt keeps no snapshots of transient domains: saving ends the domain, which is then restored from the file.
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
from orchestrator.lab.vm.storage import VARIABLE, resident_bytes
from orchestrator.lab.vm.store import difference, stamps
from orchestrator.lab.vm.watch import Watch
from orchestrator.lab.vm.workers import Workers

PATIENCE_NS = 120 * SECOND
TAKEN = "disk"


class Snapshots:
    """Takes and restores snapshots, which are in the machines' own directories and are deleted with
    the lab.
    """

    def __init__(
        self, loop: Loop, workers: Workers, machines: Machines, connect: Callable[[Guest], Launcher],
        watch: Watch, meant: set[str], running: Callable[[Guest], None],
    ) -> None:  # fmt: skip
        self._loop, self._workers, self._machines = loop, workers, machines
        self._connect, self._watch, self._meant, self._running = connect, watch, meant, running

    def take(self, guests: Sequence[Guest], name: str) -> None:
        """Saves all machines in parallel and restores each at once. A machine that cannot be saved continues
        unchanged. Raises LabError for the name `disk`, a machine that is not ready, too little room, and with
        all errors.
        """
        if name == TAKEN:
            raise LabError(f"snapshot {name}: {name}.qcow2 is the machine's own disk; take another name")
        if off := [g for g in guests if not g.ready]:
            raise LabError(off[0].unfit(f"snapshot {name}"))
        insist_on_room(guests, name)
        self._each(guests, f"snapshot {name}", lambda g: self._save(g, name))

    def revert(self, guests: Sequence[Guest], name: str) -> None:
        """Ends the running machines and restores the snapshot `name` of each. Raises LabError, before any
        machine ends, if a snapshot is missing or its files were changed; later with all errors.
        """
        if missing := [g.name for g in guests if not _memory(g, name).exists()]:
            raise LabError(
                f"revert: nodes.{missing[0]}: has no snapshot {name}; take one with `vnet snapshot`"
            )
        for guest in guests:  # checked before the first machine ends
            if why := difference(guest.snapshots.get(name, {}), _stamps(guest, name)):
                raise LabError(
                    f"revert: nodes.{guest.name}: snapshot {name} is of no use: {why}; take another one"
                )
        self._each(guests, f"return to {name}", lambda g: self._return(g, name))

    def _each(self, guests: Sequence[Guest], subject: str, work: Callable[[Guest], None]) -> None:
        """Runs `work` for all machines in parallel, reconnects those that run and sets their clocks; marks
        the others as failed. Raises LabError with all errors.
        """
        for guest in guests:
            self._meant.add(guest.name)
            if guest.channel is not None:
                guest.channel.expect_end()
                guest.channel.close()
        jobs = [partial(work, g) for g in guests]
        futures = self._workers.together(subject, PATIENCE_NS, jobs)
        errors = {g.name: str(e) for g, f in zip(guests, futures, strict=True) if (e := f.exception())}
        back = [g for g in guests if g.domain is not None]
        for guest in back:
            guest.channel = self._connect(guest)
            self._meant.discard(guest.name)
            self._watch.clock(guest).forget()
            self._running(guest)
            self._watch.state(guest, "running")
        for guest in guests:
            if guest.domain is None:
                self._watch.state(guest, f"failed: {errors[guest.name]}")
        dialogues = [(guest, self._greeted(guest.name not in errors)) for guest in back]
        _, wrong = together(self._loop, f"agents after {subject}", PATIENCE_NS, dialogues, each=True)
        told = [*errors.values(), *(f"nodes.{node}: {subject}: {why}" for node, why in wrong.items())]
        if told:
            raise LabError("; ".join(told))

    def _greeted(self, restored: bool) -> Dialogue[None]:
        yield from ask(Hello())
        if restored:
            yield from resumed(self._loop.clock)

    def _save(self, guest: Guest, name: str) -> None:
        """Saves one machine and restores it, with a copy of its disk. If the disk cannot be copied, restores
        the machine without a snapshot and raises LabError.
        """
        memory = _memory(guest, name)
        try:
            self._machines.save(guest, memory)
        except LabError:
            memory.unlink(missing_ok=True)
            raise
        try:
            _copy(guest.storage / "disk.qcow2", _disk(guest, name))
        except OSError as error:
            guest.domain = self._machines.restore(guest, memory)
            memory.unlink()
            _disk(guest, name).unlink(missing_ok=True)
            raise LabError(f"nodes.{guest.name}: its disk cannot be copied: {error}") from error
        guest.snapshots[name] = _stamps(guest, name)
        guest.domain = self._machines.restore(guest, memory)

    def _return(self, guest: Guest, name: str) -> None:
        self._machines.destroy(guest)
        _copy(_disk(guest, name), guest.storage / "disk.qcow2")
        guest.domain = self._machines.restore(guest, _memory(guest, name))


def insist_on_room(guests: Sequence[Guest], name: str) -> None:
    """Raises LabError if the lab's directory of snapshots has too little room for the memory and disks of
    these machines (at least one).
    """
    place = guests[0].storage.parent  # the directory that holds the storage of all machines of a lab
    needed, free = sum(_size_bytes(g) for g in guests), shutil.disk_usage(place).free
    if needed > free:
        raise LabError(
            f"snapshot {name}: {place}: memory and disks of {len(guests)} machine(s) take up to "
            f"{needed / 1e6:.0f} MB, {free / 1e6:.0f} MB are free; free disk space, or start the lab with "
            f"another {VARIABLE}"
        )


def _size_bytes(guest: Guest) -> int:
    """Returns the greatest size (bytes) of the machine's snapshot: its memory (only the part that QEMU holds,
    if known) plus the allocated size of its disk.
    """
    assert guest.node.vm is not None
    memory = guest.node.vm.memory_bytes
    held = resident_bytes(guest.pid) if guest.pid is not None else None
    disk = guest.storage / "disk.qcow2"
    return min(memory, held or memory) + (disk.stat().st_blocks * 512 if disk.exists() else 0)


def _memory(guest: Guest, name: str) -> Path:
    return guest.storage / f"{name}.memory"


def _disk(guest: Guest, name: str) -> Path:
    return guest.storage / f"{name}.qcow2"


def _stamps(guest: Guest, name: str) -> dict[str, list[int]]:
    files = {_memory(guest, name).name, _disk(guest, name).name}
    return {file: stamp for file, stamp in stamps(guest.storage).items() if file in files}


def _copy(source: Path, target: Path) -> None:
    if source.exists():
        shutil.copyfile(source, target)
