"""Restores machines of a campaign's labs from snapshots taken after a boot, if that is faster than a boot.

The first lab that boots a machine saves it as soon as its agent answers, and continues from that snapshot, as
later labs do. So all labs begin with the same memory and disk, except clock and random numbers. A machine
that restores more slowly than it boots is booted from then on.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.lab.clock import SECOND
from orchestrator.lab.loop import Loop
from orchestrator.lab.vm.boot import BootResult
from orchestrator.lab.vm.dialogue import Dialogue
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.machines import Machines
from orchestrator.lab.vm.resume import resumed
from orchestrator.lab.vm.starts import BOOTED, KEPT, RESTORED, Starts
from orchestrator.lab.vm.startup import Startup
from orchestrator.lab.vm.store import Kept, Store, key_of
from orchestrator.lab.vm.watch import Watch
from orchestrator.lab.vm.workers import Workers

EACH_NS = 30 * SECOND  # longest time for one machine's files, while others are read, too


class Restoring:
    """Starts a lab's machines once, with a store of snapshots; `starts` records how each started."""

    def __init__(
        self, startup: Startup, machines: Machines, store: Store, loop: Loop, workers: Workers, watch: Watch
    ) -> None:
        self._startup, self._machines, self._store = startup, machines, store
        self._loop, self._workers, self._watch = loop, workers, watch
        self.starts = Starts()

    def bring_up(self, guests: Sequence[Guest]) -> BootResult:
        """Restores stored machines; boots, stores and restores new ones if the store has room; boots the
        rest: those with a host NIC, those that restore too slowly or failed to restore or to be saved.
        Returns the results of all.
        """
        keys = self._keys([g for g in guests if not any(i.pci for i in g.node.interfaces)])
        found = {name: self._whole(name, key) for name, key in keys.items()}
        kept = {name: entry.directory for name, entry in found.items() if entry and entry.faster}
        fresh = [g for g in guests if g.name in keys and found[g.name] is None]
        if fresh and not self._room(fresh):
            fresh = []
        came = self._restore([g for g in guests if g.name in kept], kept, RESTORED)
        came = joined(came, self._keep(fresh, keys))
        rest = [g for g in guests if g.name not in came.read and g.name not in came.failed]
        return joined(came, self._boot(rest))

    def _whole(self, name: str, key: str) -> Kept | None:
        """Returns the stored machine; None if there is none, or, with a warning, if its files were
        changed.
        """
        entry = self._store.find(key)
        if entry is None or entry.damage is None:
            return entry
        self._useless(name, entry.damage)
        return None

    def _keys(self, guests: Sequence[Guest]) -> dict[str, str]:
        """Makes the machines' files and returns the store's keys by node.

        Callers leave out machines with a NIC of the host, which libvirt cannot save.
        """
        jobs = [partial(self._key, guest) for guest in guests]
        patience = EACH_NS * (1 + len(guests))
        futures = self._workers.together("the machines' files", patience, jobs)
        return {g.name: future.result() for g, future in zip(guests, futures, strict=True)}

    def _key(self, guest: Guest) -> str:
        image, seed = guest.image, guest.storage / "seed.img"
        xml = self._machines.prepare(guest)
        inputs = [p for p in (image.kernel, image.initrd, image.disk) if p is not None]
        return key_of(xml, inputs, seed.read_bytes() if seed.exists() else b"")

    def _room(self, guests: Sequence[Guest]) -> bool:
        needed = sum(g.node.vm.memory_bytes for g in guests if g.node.vm)
        if self._store.has_room(needed):
            return True
        self._watch.warn(
            "snapshots", f"{self._store.directory}: has no room for {needed >> 20} MiB of "
            f"{len(guests)} machines' memory: they boot in every cell",
            "free disk space, or choose another --results", suspect=False,
        )  # fmt: skip
        return False

    def _boot(self, guests: Sequence[Guest]) -> BootResult:
        if not guests:
            return BootResult()
        came = self._startup.boot(guests)
        self.starts.boot_ns += came.up_ns
        self.starts.nodes |= dict.fromkeys(came.read, BOOTED)
        return came

    def _keep(self, guests: Sequence[Guest], keys: Mapping[str, str]) -> BootResult:
        """Boots machines, saves and restores them; marks each for later labs as faster to restore or to boot.
        Machines that could not be saved or restored are in neither part of the result.
        """
        if not guests:
            return BootResult()
        booted = self._startup.boot(guests, _hello_is_enough)
        self.starts.boot_ns += booted.up_ns
        saved = self._save([g for g in guests if g.name in booted.read], keys)
        back = self._restore([g for g in guests if g.name in saved], saved, KEPT)
        for name in back.read:
            self._store.commit(keys[name], booted.up_ns // len(guests), back.up_ns // len(saved))
        return BootResult(back.read, booted.failed)

    def _save(self, guests: Sequence[Guest], keys: Mapping[str, str]) -> dict[str, Path]:
        """Saves machines and returns their directories by node. Ends machines that could not be saved, and
        drops their entries with a warning; they boot again.
        """
        began = self._loop.clock.now_ns()
        jobs: list[Callable[[], Path]] = []
        for guest in guests:
            if guest.channel is not None:
                guest.channel.expect_end()
                guest.channel.close()
                guest.channel = None
            jobs.append(partial(self._saved, guest, keys[guest.name]))
        patience = EACH_NS * (1 + len(guests))
        futures = self._workers.together("machines to be saved", patience, jobs)
        self.starts.save_ns += self._loop.clock.now_ns() - began
        saved: dict[str, Path] = {}
        for guest, future in zip(guests, futures, strict=True):
            if (error := future.exception()) is None:
                saved[guest.name] = future.result()
            else:
                self._given_up(guest, keys[guest.name], str(error))
        return saved

    def _saved(self, guest: Guest, key: str) -> Path:
        place = self._store.begin(key)
        self._machines.save(guest, place / "memory")
        disk = guest.storage / "disk.qcow2"
        if disk.exists():
            shutil.copyfile(disk, place / disk.name)
        return place

    def _restore(self, guests: Sequence[Guest], places: Mapping[str, Path], how: str) -> BootResult:
        """Restores machines; ends those that fail and drops their entries with a warning. They are in neither
        `read` nor `failed`.
        """
        if not guests:
            return BootResult()

        def begin(guest: Guest) -> Any:
            disk = places[guest.name] / "disk.qcow2"
            if disk.exists():
                shutil.copyfile(disk, guest.storage / disk.name)
            return self._machines.restore(guest, places[guest.name] / "memory")

        back = self._startup.begin(guests, "restoring", begin, self._told)
        for guest in guests:
            if guest.name in back.failed:
                self._given_up(guest, places[guest.name].name, back.failed[guest.name])
        self.starts.restore_ns += back.up_ns
        self.starts.nodes |= dict.fromkeys(back.read, how)
        return BootResult(back.read, {}, back.up_ns)

    def _told(self, guest: Guest) -> Dialogue[dict[str, Any]]:
        yield from resumed(self._loop.clock)
        return (yield from self._startup.configured(guest))

    def _given_up(self, guest: Guest, key: str, why: str) -> None:
        self._startup.end(guest)
        self._store.drop(key)
        (guest.storage / "disk.qcow2").unlink(missing_ok=True)
        self._useless(guest.name, why)

    def _useless(self, name: str, why: str) -> None:
        text = f"nodes.{name}: its snapshot is of no use: {why}"
        self._watch.warn("snapshots", text, "it was booted", suspect=False)


def _hello_is_enough(_: Guest) -> Dialogue[dict[str, Any]]:
    return {}
    yield  # a generator that sends no request


def joined(a: BootResult, b: BootResult) -> BootResult:
    """Merges the results of two starts; the times add up."""
    return BootResult(a.read | b.read, a.failed | b.failed, a.up_ns + b.up_ns)
