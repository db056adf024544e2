"""Boots and configures a lab's machines; one that fails does not prevent the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from contract.plan.family import speaks_ipv6
from orchestrator.lab import node_config, operations
from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import DriverContext
from orchestrator.lab.launcher import Launcher
from orchestrator.lab.vm import carry
from orchestrator.lab.vm.boot import Booting, BootResult
from orchestrator.lab.vm.dialogue import Dialogue, ask
from orchestrator.lab.vm.guest import GUEST_MESSAGES, Guest
from orchestrator.lab.vm.limits import VmLimits
from orchestrator.lab.vm.machines import Machines
from orchestrator.lab.vm.names import Names
from orchestrator.lab.vm.watch import Watch
from orchestrator.lab.vm.workers import Workers

END_NS = 120 * SECOND
WIDTH = 2 * (os.cpu_count() or 1)
DialogueWith = Callable[[Guest], Dialogue[dict[str, Any]]]


class Startup:
    """Boots domains and configures their machines."""

    def __init__(
        self, at: DriverContext, machines: Machines, bounds: VmLimits, workers: Workers, watch: Watch,
        connect: Callable[[Guest], Launcher], meant: set[str], names: Names,
    ) -> None:  # fmt: skip
        self._at, self._machines, self._limits, self._workers = at, machines, bounds, workers
        self._watch, self._connect, self._meant, self._names = watch, connect, meant, names

    def expect(self, guests: Sequence[Guest], machines: int) -> None:
        """Prepares the start of `guests`: ends the remains of their earlier domains, resets their clocks and
        files, and sets the weight for `machines`, the number of all machines of the lab.
        """
        for guest in guests:
            if guest.channel is not None:  # a machine that ended by itself may still have a channel
                self.end(guest)
            self._meant.discard(guest.name)
            self._watch.anew(guest)
        self._machines.weigh(machines)

    def settle(self, guests: Sequence[Guest], came: BootResult) -> dict[str, Any]:
        """Ends and marks the machines that failed; records, limits and marks the others as running and makes
        the bridges of bridge VMs. Returns the agents' answers by node, and {failed: reason} for those that
        failed.
        """
        for guest in guests:
            if guest.name in came.failed:
                self.end(guest)
                self._watch.state(guest, f"failed: {came.failed[guest.name]}")
            else:
                self._settled(guest)
        pids = {g.name: g.pid for g in guests}
        return {n: _seen(r, pids[n]) for n, r in came.read.items()} | {
            n: {"failed": why} for n, why in came.failed.items()
        }

    def boot(self, guests: Sequence[Guest], dialogue: DialogueWith | None = None) -> BootResult:
        """Boots all machines and runs the dialogue with each (None: `configured`); returns the results."""
        return self.begin(guests, "booting", self._machines.create, dialogue or self.configured)

    def begin(
        self, guests: Sequence[Guest], word: str, begin: Callable[[Guest], Any], dialogue: DialogueWith
    ) -> BootResult:
        """Starts all machines by `begin`, twice as many at a time as the host has cores, and runs the
        dialogue with each; `word` is their state meanwhile.
        """
        at = self._at
        return Booting(
            at.loop, self._workers, WIDTH, word, begin, self._connect, self._watch.state, dialogue
        ).run(guests)

    def end(self, guest: Guest) -> None:
        """Closes a machine's channel and ends its domain; its end is not reported as a failure."""
        self._meant.add(guest.name)
        if guest.channel is not None:
            guest.channel.close()
            guest.channel = None
        subject = f"nodes.{guest.name} to end"
        self._workers.together(subject, END_NS, [lambda: self._machines.destroy(guest)])

    def configured(self, guest: Guest) -> Dialogue[dict[str, Any]]:
        """Configures the agent's node, as a dialogue: creates it, sets its interfaces, writes node names and
        starts message records; returns the values that the agent read back.
        """
        node = guest.node
        about: operations.NewNode = {
            "name": node.name, "netns": None, "hostname": node.hostname, "cgroup_procs": [],
            "ipv6": self._ipv6(guest),
        }  # fmt: skip
        yield from ask(operations.Create(None, [about]))
        answer = yield from ask(operations.Configure([node_config.network(node)]))
        yield from self._names.written(guest)
        yield from ask(operations.Messages(GUEST_MESSAGES))
        return answer["nodes"][node.name]

    def recorded(self, guest: Guest) -> None:
        """Records the machine's QEMU process in lab.json in place of an earlier one, so that teardown after a
        crash finds it.
        """
        if guest.pid is not None:
            self._at.state.forget(guest.pid)
        guest.pid = self._machines.pid(guest)
        if guest.pid is not None:
            self._at.state.record(f"vm {guest.name}", guest.pid)

    def _settled(self, guest: Guest) -> None:
        self.recorded(guest)
        if guest.node.vm and guest.node.vm.netem:
            carry.bridge(self._at.loop, guest)
        self._limits.apply(guest.name, guest.domain)
        self._watch.state(guest, "running")

    def _ipv6(self, guest: Guest) -> bool:
        six = {s.name for s in self._at.plan.segments if s.ipv6}
        return speaks_ipv6(guest.node.interfaces, six)


def _seen(read: dict[str, Any], pid: int | None) -> dict[str, Any]:
    """Returns the agent's answer in the format of light nodes: "" for an absent address, 0 for an absent
    prefix, and the pid of QEMU.
    """
    cards = [
        {**i, "address": i.get("address") or "", "prefix": i.get("prefix") or 0}
        for i in read.get("interfaces", [])
    ]
    return {**read, "interfaces": cards, "pid": pid}
