"""The plan's queue of what the file says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import Band, Cake, Discipline, FqCodel, Htb, Prio, Red

if TYPE_CHECKING:  # labs load this module, and have the standard library only
    from ..topology.queues import Band as FileBand
    from ..topology.queues import Queue as FileQueue

LIMIT_TO_MAX = 4  # of RED's whole queue, where the file does not say


def discipline(source: FileQueue | None, rate_bps: int) -> Discipline | None:
    """The kind that the file names, with its defaults filled in from the direction's rate."""
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
    return None


def _band(name: str, band: FileBand, rate_bps: int = 0, ceil_bps: int = 0) -> Band:
    return Band(name, tuple(band.pcp), tuple(band.dscp), tuple(band.port), band.limit, rate_bps, ceil_bps)
