"""Writes CPU, memory and interface counters of the machines to raw/nodes.vm.csv, once a second.

A thread of its own inside the core namespace does this, because libvirt takes up to 80 ms for 40 machines.
When a machine restarts, its CPU counter continues from the last value.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from orchestrator.lab.clock import SECOND, Clock
from orchestrator.lab.vm.disks import FILE, MachineDisks
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.workers import enter

HEADER = "t_ns,node,cpu_ns,rx_bytes,rx_packets,tx_bytes,tx_packets,memory_bytes\n"


class Rising:
    """Counters by name that start at 0 and never fall, even if the source restarts at 0."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._sum: dict[str, int] = {}

    def take(self, name: str, value: int) -> int:
        """Adds the growth since the last value to the counter `name` and returns the sum; the first value
        counts as 0, and a fallen one as a restart from 0.
        """
        before = self._last.get(name)
        self._last[name] = value
        step = 0 if before is None else value - before if value >= before else value
        self._sum[name] = self._sum.get(name, 0) + step
        return self._sum[name]


Counts = tuple[int, int, int, int]  # rx bytes, rx packets, tx bytes, tx packets


def ports(text: str) -> dict[str, Counts]:
    """Returns bytes and packets, received and sent, of each device in the text of /proc/net/dev."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        values = rest.split()
        found[name.strip()] = int(values[0]), int(values[1]), int(values[8]), int(values[9])
    return found


def together(wires: Mapping[str, Counts], names: Iterable[str]) -> Counts:
    """Returns the sums of each count over these devices; an absent device (a NIC handed to the machine) adds
    nothing.
    """
    found = [wires[name] for name in names if name in wires]
    rx, rx_packets, tx, tx_packets = (sum(counts[i] for counts in found) for i in range(4))
    return rx, rx_packets, tx, tx_packets


class Sampler:
    """Writes one row for each ready machine and second until `stop`, or until an error, which `failure` then
    holds.
    """

    def __init__(
        self, path: Path, netns: str, libvirt: Any, clock: Clock, guests: Callable[[], Iterable[Guest]]
    ) -> None:
        self._path, self._netns, self._libvirt, self._clock, self._guests = (
            path,
            netns,
            libvirt,
            clock,
            guests,
        )
        self._end = threading.Event()
        self._rising = Rising()
        self._disks = MachineDisks(self._rising.take)
        self.failure: str | None = None
        self._thread = threading.Thread(target=self._run, name="vm counters", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()
        self._disks.write(self._path.with_name(FILE))

    def _run(self) -> None:
        try:
            enter(self._netns)
            with self._path.open("a") as out:
                if out.tell() == 0:
                    out.write(HEADER)
                wait_ns = 0
                while not self._end.wait(wait_ns / SECOND):
                    out.write("".join(self._rows()))
                    out.flush()
                    wait_ns = SECOND - self._clock.now_ns() % SECOND
        except (OSError, self._libvirt.libvirtError) as error:
            self.failure = f"{self._path.name}: {error}"

    def _rows(self) -> Iterable[str]:
        """Yields the present row of each ready machine; leaves out a machine that has just ended."""
        now = self._clock.now_ns()
        text = Path("/proc/thread-self/net/dev").read_text()
        wires = ports(text)
        lib = self._libvirt
        kinds = lib.VIR_DOMAIN_STATS_CPU_TOTAL | lib.VIR_DOMAIN_STATS_BALLOON | lib.VIR_DOMAIN_STATS_BLOCK
        for guest in list(self._guests()):
            if guest.domain is None or not guest.ready:
                continue
            try:
                connection = guest.domain.connect()
                ((_, stats),) = connection.domainListGetStats([guest.domain], kinds)
            except (self._libvirt.libvirtError, ValueError):
                continue  # the machine has just ended, which its channel reports to the loop
            self._disks.take(guest.name, stats)
            yield self._row(now, guest, stats, wires)

    def _row(self, now: int, guest: Guest, stats: dict[str, Any], wires: dict[str, Counts]) -> str:
        cpu = self._rising.take(f"cpu {guest.name}", int(stats.get("cpu.time", 0)))
        rx, rx_packets, tx, tx_packets = together(wires, [i.port for i in guest.node.interfaces])
        # Bytes that the port sends are bytes that the node receives, and the other way round.
        memory = int(stats.get("balloon.rss", 0)) * 1024
        return f"{now},{guest.name},{cpu},{tx},{tx_packets},{rx},{rx_packets},{memory}\n"
