"""Converts the impairment of one direction from the file to the plan, with the queue limit that it needs.

netem keeps every delayed packet in its queue and silently drops packets beyond `limit` (default 1,000
packets), so a fast link with a delay loses packets although no loss was requested. The limit is therefore
computed unless the file sets it:

limit = max(1000, ceil(2 * rate * (delay + 4 * jitter) / (8 * 256 bytes)))

This is twice the number of 256-byte packets (an exchange of small messages averages less than 300 bytes) that
arrive at the rate during the delay and the tail of its jitter. A direction without a rate counts as 10
Gbit/s, more than a veth pair carries in small packets.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from contract.plan import Direction, Impairment, Trace

from ..queueing import fifo
from .slots import planned

if TYPE_CHECKING:  # labs load this module, and have the standard library only
    from ..topology.impairments import Impairment as FileImpairment

LEAST_LIMIT = 1000  # netem's own default
MARGIN = 2
SMALL_PACKET_BYTES = 256
UNSHAPED_BPS = 10 * 10**9
JITTER_TAIL = 4


def queue_limit(delay_ns: int, jitter_ns: int, rate_bps: int) -> int:
    """Returns the number of packets that netem must be able to hold so that only its loss model loses
    packets, by the formula above; rate 0 counts as 10 Gbit/s.
    """
    held_s = (delay_ns + JITTER_TAIL * jitter_ns) / 1e9
    bits = (rate_bps or UNSHAPED_BPS) * held_s
    return max(LEAST_LIMIT, math.ceil(MARGIN * bits / (8 * SMALL_PACKET_BYTES)))


FRAME_BYTES = 18  # bytes of a frame besides its payload: the Ethernet header, and a tag or the FCS


def impairment(source: FileImpairment | None, mtu: int = 1500) -> Impairment:
    """Returns the plan's impairment for the file's, on a wire of that MTU, with its queue limit; None: a wire
    without impairment. With a trace, the limits fit the largest of its states.
    """
    if source is None:
        return Impairment(frame_bytes=mtu + FRAME_BYTES)
    rate = source.rate or 0
    model = source.gilbert_elliott
    plain = Impairment(
        delay_ns=source.delay,
        jitter_ns=source.jitter,
        distribution=source.distribution,
        delay_correlation=source.delay_correlation,
        loss=source.loss,
        loss_correlation=source.loss_correlation,
        gemodel=(model.good_to_bad, model.bad_to_good, model.loss_in_bad, model.loss_in_good)
        if model
        else None,
        duplicate=source.duplicate,
        duplicate_correlation=source.duplicate_correlation,
        corrupt=source.corrupt,
        corrupt_correlation=source.corrupt_correlation,
        reorder=source.reorder,
        reorder_correlation=source.reorder_correlation,
        rate_bps=rate,
        frame_bytes=mtu + FRAME_BYTES,
        queue=source.queue.discipline(rate) if source.queue is not None else None,
        slot=planned(source.slot),
        backpressure=source.backpressure,
    )
    if source.trace is not None:
        return _replayed(plain, source.trace.trace, source.limit)
    return sized(plain, source.limit)


def direction(
    source: FileImpairment | None, mtu: int, at: tuple[str, str], far: tuple[str, str]
) -> Direction:
    """Returns the direction from one end of a wire to the other, with the plan's impairment and the name of
    its trace; an end is a (namespace, device) pair.
    """
    trace = str(source.trace) if source is not None and source.trace is not None else None
    return Direction(impairment(source, mtu), *at, *far, trace=trace)


def _replayed(first: Impairment, trace: Trace, limit: int | None) -> Impairment:
    """Returns the impairment with queue limits for the largest of the trace's states, and netem kept if the
    trace changes delay or loss.

    A changing rate is set on a separate queue after the delay. netem alone fixes the departure of a packet
    when it arrives, so a change would not reach the packets that wait.
    """
    delay_ns = max([first.delay_ns, *(s.delay_ns for s in trace.states if s.delay_ns is not None)])
    fastest_bps = max([first.rate_bps, *(s.rate_bps for s in trace.states if s.rate_bps is not None)])
    rated = trace.states[0].rate_bps is not None
    longest = limit or queue_limit(delay_ns, first.jitter_ns, fastest_bps)
    if rated:
        queue = first.queue or fifo.of_length(min(longest, 2**31 - 1))
        first = dataclasses.replace(first, queue=dataclasses.replace(queue, steered=True))
    ahead = queue_limit(delay_ns, first.jitter_ns, 0) if first.queue is not None else longest
    stays = any(getattr(trace.states[0], name) is not None for name in ("delay_ns", "loss"))
    return dataclasses.replace(first, netem_stays=stays, limit_packets=ahead)


def sized(wanted: Impairment, limit: int | None = None) -> Impairment:
    """Returns the impairment with its queue limit (packets): `limit`, or else the computed one; 0 without an
    impairment.

    Before a queue of a stated kind, netem holds packets to which the rate does not apply yet, so the rate
    does not reduce the computed limit.
    """
    if limit is None:
        rate = wanted.rate_bps if wanted.queue is None else 0
        limit = queue_limit(wanted.delay_ns, wanted.jitter_ns, rate) if wanted.present else 0
    return dataclasses.replace(wanted, limit_packets=limit)
