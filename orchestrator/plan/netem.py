"""netem: the queue limit of a direction, and the text that tc is given for it.

The queue limit. netem keeps every delayed packet in its queue and drops what exceeds `limit` (default 1,000
packets) without a word, so a fast link with a delay loses packets that nobody asked it to lose. The
limit is therefore sized unless the file sets it:

    limit = max(1000, ceil(2 * rate * (delay + 4 * jitter) / (8 * 256 bytes)))

twice the packets of 256 bytes (an exchange of small messages averages less than 300) that the rate can put
into the delay and the tail of its jitter. A direction without a rate counts as 10 Gbit/s, more than a veth
pair carries in small packets.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from ..model import Impairment

if TYPE_CHECKING:  # labs load this module, and have the standard library only
    from ..topology.network import Impairment as FileImpairment

LEAST_LIMIT = 1000  # netem's own default
MARGIN = 2
SMALL_PACKET_BYTES = 256
UNSHAPED_BPS = 10 * 10**9
JITTER_TAIL = 4


def queue_limit(delay_ns: int, jitter_ns: int, rate_bps: int) -> int:
    """Packets that netem must be able to hold so that only its loss model loses any."""
    held_s = (delay_ns + JITTER_TAIL * jitter_ns) / 1e9
    bits = (rate_bps or UNSHAPED_BPS) * held_s
    return max(LEAST_LIMIT, math.ceil(MARGIN * bits / (8 * SMALL_PACKET_BYTES)))


def impairment(source: FileImpairment | None) -> Impairment:
    """The plan's impairment of what the file says; None is a plain wire."""
    if source is None:
        return Impairment()
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
    )
    return sized(plain, source.limit)


def sized(wanted: Impairment, limit: int | None = None) -> Impairment:
    """The same impairment with its queue limit: `limit`, or the computed one; a plain wire has none."""
    if limit is None:
        limit = queue_limit(wanted.delay_ns, wanted.jitter_ns, wanted.rate_bps) if wanted.present else 0
    return dataclasses.replace(wanted, limit_packets=limit)


def netem_text(wanted: Impairment) -> str:
    """netem's arguments for `tc qdisc`, for example `netem limit 1000 delay 10ms 1ms rate 1gbit`."""
    words = ["netem", f"limit {wanted.limit_packets}"]
    if wanted.delay_ns:
        words.append(_delay(wanted))
    words += _loss(wanted)
    for name in ("duplicate", "corrupt"):
        words += _chance(name, getattr(wanted, name), getattr(wanted, f"{name}_correlation"))
    # tc reads reorder only after delay, and refuses it without one.
    words += _chance("reorder", wanted.reorder, wanted.reorder_correlation)
    if wanted.rate_bps:
        words.append(f"rate {_bits(wanted.rate_bps)}")
    return " ".join(words)


def qdisc_line(device: str, wanted: Impairment) -> str:
    """One line of `tc -batch`; replaces the device's root qdisc, whatever it is."""
    return f"qdisc replace dev {device} root handle 1: {netem_text(wanted)}"


def _delay(wanted: Impairment) -> str:
    words = [f"delay {_time(wanted.delay_ns)}"]
    if wanted.jitter_ns:
        words.append(_time(wanted.jitter_ns))
        if wanted.delay_correlation:
            words.append(_percent(wanted.delay_correlation))
        if wanted.distribution != "uniform":
            words.append(f"distribution {wanted.distribution}")
    return " ".join(words)


def _loss(wanted: Impairment) -> list[str]:
    if wanted.gemodel is not None:
        return ["loss gemodel " + " ".join(_percent(share) for share in wanted.gemodel)]
    return _chance("loss random", wanted.loss, wanted.loss_correlation)


def _chance(name: str, share: float, correlation: float) -> list[str]:
    if not share:
        return []
    return [" ".join([name, _percent(share)] + ([_percent(correlation)] if correlation else []))]


def _percent(share: float) -> str:
    return f"{share * 100:.9g}%"


def _time(ns: int) -> str:
    # Whole microseconds, as check demands; tc before 6.6 reads nothing finer.
    for unit, size in (("s", 10**9), ("ms", 10**6)):
        if ns % size == 0:
            return f"{ns // size}{unit}"
    return f"{ns // 1000}us"


def _bits(bps: int) -> str:
    for unit, size in (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3)):
        if bps % size == 0:
            return f"{bps // size}{unit}"
    return f"{bps}bit"
