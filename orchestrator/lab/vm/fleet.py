"""Controls all machines of a lab: boots, limits, powers off, saves, reverts and ends them, and sets their
carriers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from contract.plan import Node
from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import DriverContext
from orchestrator.lab.errors import LabError
from orchestrator.lab.launcher import Launcher
from orchestrator.lab.operations import Finish
from orchestrator.lab.vm import clocks
from orchestrator.lab.vm.collector import Collector
from orchestrator.lab.vm.connection import Connection
from orchestrator.lab.vm.consoles import Consoles
from orchestrator.lab.vm.dialogue import Dialogue, ask, together
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.guest_channel import GuestChannel
from orchestrator.lab.vm.limits import VmLimits
from orchestrator.lab.vm.machines import Machines, taps
from orchestrator.lab.vm.names import Names
from orchestrator.lab.vm.pauses import Pauses, resuming
from orchestrator.lab.vm.rearming import Rearming
from orchestrator.lab.vm.restoring import Restoring
from orchestrator.lab.vm.silence import Silence
from orchestrator.lab.vm.snapshots import Snapshots
from orchestrator.lab.vm.starts import BOOTED, Starts
from orchestrator.lab.vm.startup import END_NS, Startup
from orchestrator.lab.vm.store import Store
from orchestrator.lab.vm.watch import Watch
from orchestrator.lab.vm.workers import Workers

THREADS = 40  # number of worker threads; `destroy` waits two seconds inside libvirt
QUIT_NS = 10 * SECOND


class Fleet:
    """Controls the machines in `guests`, the driver's own table, to which nodes are added and removed."""

    def __init__(
        self, at: DriverContext, connection: Connection, machines: Machines, bounds: VmLimits,
        guests: dict[str, Guest], watch: Watch, rearming: Rearming, silence: Silence, names: Names,
    ) -> None:  # fmt: skip
        self._at, self._connection, self._machines, self._limits = at, connection, machines, bounds
        self.guests, self._watch, self._rearming = guests, watch, rearming
        self.libvirt = connection.libvirt
        self._meant: set[str] = set()  # machines that this process itself ends
        self.collector = Collector(at.loop, guests, watch)
        # The workers enter the core namespace; if a daemon starts the domains, they stay in the machine's
        # own namespace, through which they lend it the taps.
        netns = at.plan.core_netns if connection.embedded else None
        self._workers = Workers(at.loop, THREADS, netns)
        self._pauses = Pauses(at.loop, guests, silence, resuming(self._workers.submit, self.libvirt))
        self._pauses.listen(self.libvirt, connection.handle)
        self._consoles = Consoles(at.loop, guests, watch.warn)
        self._startup = Startup(at, machines, bounds, self._workers, watch, self._connect, self._meant, names)

    def bring_up(self, guests: Sequence[Guest]) -> dict[str, Any]:
        """Boots machines, or restores them if the context has a store of snapshots; returns by node the
        agent's answer, or {failed: reason}.
        """
        self._startup.expect(guests, len(self.guests))
        if self._at.snapshots is None:
            came = self._startup.boot(guests)
            starts = Starts(dict.fromkeys(came.read, BOOTED), came.up_ns)
        else:
            store = Store(self._at.snapshots)
            restoring = Restoring(
                self._startup, self._machines, store, self._at.loop, self._workers, self._watch
            )
            came, starts = restoring.bring_up(guests), restoring.starts
        self._watch.starts(starts)
        return self._startup.settle(guests, came)

    def _connect(self, guest: Guest) -> Launcher:
        name = guest.name
        return GuestChannel(
            self._at.loop, guest.directory / "agent.sock", name,
            lambda message: self._watch.guest(name, message), lambda why: self._lost(guest, why),
        )  # fmt: skip

    def _lost(self, guest: Guest, why: str) -> None:
        """Reports the end of a machine, with records of its sessions, unless this process ended it or it was
        not up.
        """
        if guest.name in self._meant or not guest.up:
            return
        self._rearming.lost(guest.name, self._at.loop.clock.now_ns())
        self._watch.state(guest, "failed: its machine ended")
        self._watch.died(guest, why)

    def limit(self, nodes: Sequence[Node]) -> dict[str, Any]:
        """Stores CPU limits and reservations of nodes for their start, and sets those of all running machines
        now; returns the values by node. Raises LabError if this machine cannot limit CPU.
        """
        everyone = {g.name: g.node for g in self.guests.values()} | {n.name: n for n in nodes}
        applied = self._limits.plan(nodes, list(everyone.values()))
        for node in nodes:
            self.guests[node.name].node = node
        for guest in self.guests.values():
            if guest.domain is not None:
                self._limits.apply(guest.name, guest.domain)
        return applied

    def carrier(self, port: str, up: bool) -> None:
        """Connects or disconnects the machine's wire at `port`; does nothing if no machine has it."""
        for guest in self.guests.values():
            if any(card.port == port for card in taps(guest.node.interfaces)):
                self._machines.carrier(guest, port, up)

    def power(self, guests: Sequence[Guest], on: bool) -> None:
        """Switches machines off or on. Off: ends their sessions, fetches their files, lets them power off,
        and ends the remaining ones. On: boots machines that do not run, and arms their roles again. Raises
        LabError if a machine to be started runs without answering, or fails to start.
        """
        if on:
            if deaf := [g for g in guests if g.connected and not g.ready]:
                raise LabError(deaf[0].unfit("start"))
            self._power_on([g for g in guests if not g.ready])
            return
        running = [g for g in guests if g.ready]
        self._take_leave(running)
        self.collector.fetch(running)
        for guest in running:
            self._meant.add(guest.name)
            if guest.channel is not None:
                guest.channel.expect_end()
                self._machines.ask_to_end(guest)
        jobs = [partial(self._machines.await_end, g, QUIT_NS / SECOND) for g in running]
        self._workers.together("machines to power off", QUIT_NS + END_NS, jobs)
        self._end(guests)
        for guest in guests:
            self._watch.state(guest, "stopped")

    def _power_on(self, guests: Sequence[Guest]) -> None:
        """Boots machines, estimates their clocks and arms their roles; raises LabError with the errors of all
        that failed.
        """
        if not guests:
            return
        self._startup.expect(guests, len(self.guests))
        read = self._startup.settle(guests, self._startup.boot(guests))
        if failed := {name: r["failed"] for name, r in read.items() if "failed" in r}:
            raise LabError("; ".join(f"nodes.{name}: {why}" for name, why in failed.items()))
        dialogues = [(guest, self._live_again(guest)) for guest in guests]
        _, wrong = together(self._at.loop, "sessions of the machines", END_NS, dialogues, each=True)
        if wrong:
            raise LabError("; ".join(f"nodes.{name}: {why}" for name, why in wrong.items()))

    def _take_leave(self, guests: Sequence[Guest]) -> None:
        """Ends the sessions of machines with roles, so that the machines record the state of their
        messages.
        """
        now = self._at.loop.clock.now_ns()
        dialogues = [(guest, _finished()) for guest in guests if self._rearming.ended(guest.name, now)]
        together(self._at.loop, "sessions to leave", END_NS, dialogues, each=True)

    def _live_again(self, guest: Guest) -> Dialogue[None]:
        """Estimates a machine's clock and arms its roles again, as a dialogue."""
        clock, known = self._at.loop.clock, self._watch.clock(guest)
        known.estimates.append((yield from clocks.estimate(clock)))
        yield from self._rearming.again(guest.name, clock, known.to_guest)

    def destroy(self, guests: Sequence[Guest]) -> None:
        """Ends machines at once and removes them from the table."""
        self._end(guests)
        for guest in guests:
            self.guests.pop(guest.name, None)

    def _end(self, guests: Sequence[Guest]) -> None:
        """Ends machines at once, and their QEMU processes if they remain; they stay in the table."""
        for guest in guests:
            self._meant.add(guest.name)
            if guest.channel is not None:
                guest.channel.expect_end()
                guest.channel.close()
                guest.channel = None
        living = [g for g in guests if g.domain is not None]
        if not living:
            return
        jobs = [partial(self._machines.destroy, g) for g in living]
        for future in self._workers.together("machines to end", END_NS, jobs):
            future.result()
        for guest in guests:
            if guest.pid is not None:
                self._at.state.end(guest.pid)  # a libvirt daemon that was killed ends no process
                guest.pid = None

    def snapshot(self, guests: Sequence[Guest], name: str) -> None:
        self._snapshots.take(guests, name)

    def revert(self, guests: Sequence[Guest], name: str) -> None:
        self._snapshots.revert(guests, name)

    @property
    def _snapshots(self) -> Snapshots:
        return Snapshots(
            self._at.loop, self._workers, self._machines, self._connect, self._watch, self._meant,
            self._startup.recorded,
        )  # fmt: skip

    def close(self) -> None:
        self._pauses.close()
        self._consoles.close()
        self._workers.close()
        self._machines.close()
        self._connection.close()


def _finished() -> Dialogue[None]:
    yield from ask(Finish())
