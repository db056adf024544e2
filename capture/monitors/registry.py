"""Lists all monitors and reads them. docs/monitors.md explains each."""

from __future__ import annotations

from collections.abc import Callable

from capture.conservation.evidence import Evidence
from capture.monitors import brokers, delayed_acks, queues, sockets
from capture.monitors.monitor import Monitor, Reading

MONITORS: dict[Monitor, Callable[[Evidence], Reading]] = {
    queues.OVERFLOW: queues.overflow,
    queues.AT_RATE: queues.at_rate,
    sockets.DROPS: sockets.drops,
    sockets.AGAIN: sockets.retransmissions,
    delayed_acks.PLATEAU: delayed_acks.plateau,
    brokers.LIMITS: brokers.limits,
}


def readings(evidence: Evidence) -> list[Reading]:
    """Returns the reading of every monitor, in the order of the registry."""
    if evidence.manifest.driver == "fake":
        return [monitor.untold("the fake driver's figures are invented") for monitor in MONITORS]
    return [read(evidence) for read in MONITORS.values()]
