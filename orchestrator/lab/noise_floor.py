"""Measures the delay that the machine itself adds to a frame, on a separate wire during the proof.

The wire is a veth pair in the core namespace whose netem only delays by 1 ms. Any further delay comes from
the machine: from a timer that fired late, or a process that waited for a core.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from contract.plan import Impairment, Link, Step
from orchestrator import queueing
from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.driver import Driver
from orchestrator.lab.operations import Probe, Probed, Prove
from orchestrator.lab.probes import SIZE, SPACING_NS
from orchestrator.lab.tolerance import Noise

NEAR, FAR = "ref.a", "ref.b"  # device names with a dot, which no device of a lab has
REQUESTED = Impairment(delay_ns=MILLISECOND, limit_packets=1000)
QUIET_FRAMES = 100
MOST_FRAMES = 1000
LEAST = 20  # least number of frames that must arrive


def wanted(links: Sequence[Link]) -> bool:
    """Returns whether netem in the lab's own kernel delays this direction; directions through a bridge VM do
    not count.
    """
    ways = [d for link in links for d in (link.forward, link.reverse) if d.enter is None]
    return any(d.impairment.delay_ns for d in ways)


@contextmanager
def wire(driver: Driver, netns: str) -> Iterator[None]:
    """Makes the reference wire and removes it at the end of the context."""
    made = f"link add {NEAR} type veth peer name {FAR}\nlink set {NEAR} up\nlink set {FAR} up\n"
    driver.apply(Step("ip", netns, made, "reference wire"))
    try:
        driver.apply(Step("tc", netns, queueing.set_text(NEAR, REQUESTED), "reference wire"))
        yield
    finally:
        driver.apply(Step("ip", netns, f"link del {NEAR}\n", "reference wire"))


def probe(netns: str, count: int) -> Probe:
    """Returns a probe of `count` frames through the reference wire."""
    return {
        "link": NEAR, "direction": "forward", "netns": netns, "device": NEAR, "far_netns": netns,
        "far_device": FAR, "count": count, "size": SIZE, "start_ns": 0, "interval_ns": SPACING_NS,
        "timeout_ns": SECOND,
    }  # fmt: skip


def quiet(driver: Driver, netns: str) -> Noise | None:
    """Returns the delay that the machine adds while no other proof frames flow; None if fewer than 20 frames
    arrived.
    """
    answer = driver.call(Prove([probe(netns, QUIET_FRAMES)]))
    return noise(answer["probes"][0])


def noise(seen: Probed) -> Noise | None:
    """Returns mean, median and interquartile range (ns) of the delay above 1 ms in one series of frames; None
    if fewer than 20 arrived.
    """
    added = [d - REQUESTED.delay_ns for d in seen["delays_ns"]]
    if len(added) < LEAST:
        return None
    low, middle, high = statistics.quantiles(added, n=4)
    return Noise(statistics.fmean(added), middle, high - low)
