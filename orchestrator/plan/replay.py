"""Computes a direction's impairment for each state of a trace.

Uses the standard library only, since the lab process plays traces inside the lab's kernel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from contract.plan import Impairment, State, Trace

from ..queueing import QUEUE_KINDS

# A queue stores at most a minute of sent traffic (mbuffer in net/sched/sch_htb.c), so a frame must take less
# than that.
LONGEST_FRAME_NS = 50 * 10**9


SHARPER = 8  # in an outage, the rate is set again whenever 1/8 of the remaining time has passed
SHARPEST_NS = 2 * 10**6


@dataclasses.dataclass(frozen=True, slots=True)
class Moment:
    """A state of a trace that begins `at_ns` after the trace began.

    silent_ns: for a rate of 0, the time from then on in which nothing is sent. again: True if the state is
    the same as before and only `silent_ns` has changed.
    """

    at_ns: int
    state: State
    silent_ns: int = 0
    again: bool = False


def moments(trace: Trace) -> Iterator[Moment]:
    """Yields the states of a trace in the order of time, without end if the trace repeats.
    During an outage (a rate of 0) the state is yielded repeatedly, with `again`, at shorter intervals towards
    its end, until less than 2 ms of the outage remain.
    """
    spans = _spans(trace)
    begin_ns = 0
    while True:
        for state, lasts_ns, silent_ns in spans:
            at_ns, end_ns = begin_ns + state.at_ns, begin_ns + state.at_ns + silent_ns
            yield Moment(at_ns, state, silent_ns)
            left_ns = silent_ns
            while (left_ns := left_ns - left_ns // SHARPER) >= SHARPEST_NS:
                if end_ns - left_ns >= at_ns + lasts_ns:
                    break
                yield Moment(end_ns - left_ns, state, left_ns, again=True)
        if not trace.repeat:
            return
        begin_ns += trace.length_ns


def impairment(base: Impairment, moment: Moment) -> Impairment:
    """Returns the direction's impairment from that moment on: `base` with the rate, delay and loss of the
    state.

    Rates of a queue's classes change with the rate. A queue cannot have a rate of zero. So in an outage the
    queue gets the rate at which one frame takes the rest of the outage (at most LONGEST_FRAME_NS). The first
    waiting or arriving frame is then sent, and the next one when the outage is over.
    """
    state, changed = moment.state, dict[str, Any]()
    if state.rate_bps is not None:
        changed["rate_bps"] = state.rate_bps
    if state.rate_bps == 0:
        lasts_ns = max(1, min(moment.silent_ns, LONGEST_FRAME_NS))
        changed["rate_bps"] = -(-base.frame_bytes * 8 * 10**9 // lasts_ns)
        assert base.queue is not None
        changed["queue"] = dataclasses.replace(base.queue, least_bytes=base.frame_bytes)
    elif state.rate_bps is not None and base.queue is not None:
        queue_kind = QUEUE_KINDS[base.queue.kind]
        changed["queue"] = queue_kind.at_rate(base.queue, base.rate_bps, state.rate_bps)
    if state.delay_ns is not None:
        changed["delay_ns"] = state.delay_ns
    if state.loss is not None:
        changed["loss"] = state.loss
    return dataclasses.replace(base, **changed)


def _spans(trace: Trace) -> list[tuple[State, int, int]]:
    """Returns for each state (state, its length, the time from its beginning until a state with a rate other
    than 0), in ns. A trace that repeats continues with its first state.
    """
    states, n = trace.states, len(trace.states)
    ends = [state.at_ns for state in states[1:]] + [trace.length_ns]
    lasting = [end - state.at_ns for state, end in zip(states, ends, strict=True)]
    found = []
    for i, state in enumerate(states):
        silent_ns, j = 0, i
        while states[j % n].rate_bps == 0 and j < i + n and (j < n or trace.repeat):
            silent_ns += lasting[j % n]
            j += 1
        found.append((state, lasting[i], silent_ns))
    return found
