"""Changes bands of a queue, and finds queues that cannot work after a change.

Labs load this module, and have the standard library only.
"""

from __future__ import annotations

import dataclasses

from contract.plan import Band, Impairment

from ..queueing import queue_kind_of


def with_bands(wanted: Impairment, bands: tuple[Band, ...]) -> Impairment:
    """Returns the impairment with these bands in its queue, which must have bands."""
    assert wanted.queue is not None
    return dataclasses.replace(wanted, queue=dataclasses.replace(wanted.queue, bands=bands))


def impossible(wanted: Impairment) -> str | None:
    """Returns the reason why the impairment's queue cannot work: no rate, a band of 0 packets, or what its
    kind finds. Returns None if the queue can work, or if there is no queue.
    """
    queue_kind = queue_kind_of(wanted)
    if wanted.queue is None or queue_kind is None:
        return None
    if not wanted.rate_bps:
        return "a queue needs a rate before which packets wait; give one, or take the queue away with --clear"
    if any(not band.limit_packets for band in wanted.queue.bands):
        return "a queue of 0 packets drops everything; give a limit"
    return queue_kind.impossible(wanted)
