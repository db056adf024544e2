"""Converts a queue of the file to a queue of the plan, and finds queues that cannot work after a change."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from contract.plan import Band, Cake, Discipline, Fifo, FqCodel, Htb, Impairment, Prio, Red

if TYPE_CHECKING:  # labs load this module, and have the standard library only
    from ..topology.queues import Band as FileBand
    from ..topology.queues import Queue as FileQueue

LIMIT_TO_MAX = 4  # of RED's whole queue, where the file does not say


def discipline(source: FileQueue | None, rate_bps: int) -> Discipline | None:
    """Returns the plan's queue of the kind that the file names; None without one. A class of HTB without a
    ceiling gets the direction's rate, RED without a limit 4 times its `max`.
    """
    if source is None:
        return None
    if source.prio is not None:
        return Discipline(prio=Prio(tuple(_band(name, band) for name, band in source.prio.items())))
    if source.htb is not None:
        return Discipline(
            htb=Htb(tuple(_band(n, c, c.rate, c.ceil or rate_bps) for n, c in source.htb.items()))
        )
    if (red := source.red) is not None:
        limit = red.limit if red.limit is not None else LIMIT_TO_MAX * red.max
        return Discipline(red=Red(red.min, red.max, limit, red.probability, red.ecn))
    if (fq := source.fq_codel) is not None:
        return Discipline(fq_codel=FqCodel(fq.limit, fq.flows, fq.target, fq.interval, fq.ecn))
    if (cake := source.cake) is not None:
        return Discipline(cake=Cake(cake.isolation, cake.diffserv, cake.rtt))
    if (fifo := source.fifo) is not None:
        return Discipline(fifo=Fifo(fifo.limit))
    return None


def _band(name: str, band: FileBand, rate_bps: int = 0, ceil_bps: int = 0) -> Band:
    return Band(name, tuple(band.pcp), tuple(band.dscp), tuple(band.port), band.limit, rate_bps, ceil_bps)


def with_bands(wanted: Impairment, bands: tuple[Band, ...]) -> Impairment:
    """Returns the impairment with these bands as its queue, which is `prio` if the old queue was,
    else `htb`.
    """
    prio = wanted.queue is not None and wanted.queue.prio is not None
    queue = Discipline(prio=Prio(bands)) if prio else Discipline(htb=Htb(bands))
    return dataclasses.replace(wanted, queue=queue)


def impossible(wanted: Impairment) -> str | None:
    """Returns the reason why the impairment's queue cannot work: no rate, a band of 0 packets, or HTB rates
    that do not fit. HTB needs 0 < guaranteed rate <= ceiling <= link rate, and no more guaranteed than the
    link has.
    Returns None if the queue can work, or if there is no queue.
    """
    if wanted.queue is None:
        return None
    if not wanted.rate_bps:
        return "a queue needs a rate before which packets wait; give one, or take the queue away with --clear"
    if any(not band.limit_packets for band in wanted.queue.bands):
        return "a queue of 0 packets drops everything; give a limit"
    return _rates(wanted.queue.htb.classes, wanted.rate_bps) if wanted.queue.htb is not None else None


def _rates(classes: tuple[Band, ...], rate_bps: int) -> str | None:
    from ..language.units import text_bps  # labs pay for every import

    for one in classes:
        rates = one.rate_bps, one.ceil_bps, rate_bps
        if not 0 < rates[0] <= rates[1] <= rates[2]:
            said = "guaranteed {}, ceiling {}, link {}".format(*map(text_bps, rates))
            return f"class {one.name}: {said}: not in rising order; change them together"
    total = sum(one.rate_bps for one in classes)
    if total > rate_bps:
        return (
            f"the classes are guaranteed {text_bps(total)} of {text_bps(rate_bps)}; lower one of them first"
        )
    return None
