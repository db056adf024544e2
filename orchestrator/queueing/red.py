"""Implements the queue kind `red`: random early detection, which drops or marks; the kernel's
net/sched/sch_red.c.

Below a token bucket, RED does not notice that its queue is empty, because the bucket calls red_peek, which
does not start the idle time. The mean therefore falls with arriving packets and not with time, and a change
of settings resets it to zero. Below a class whose rate a trace changes, RED notices an empty queue.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from contract.plan import Band, Discipline, Impairment

from . import words
from .discipline import QUEUE, Fault, Part, Place, QueueKind, entry, given
from .kind import Entry, Mismatch
from .settings import REQUIRED, discipline, flag, settings_of, share, size

MEAN_PACKET_BYTES = 1000  # bytes; recommended by tc-red(8) for the Internet
LEAST_FRAME_BYTES = 14  # no frame is shorter than its Ethernet header


LIMIT_TO_MAX = 4  # length of the whole queue as a multiple of `max`, if the file does not state it
MARKED_AT = 12  # position of marked in struct tc_red_xstats {early, pdrop, other, marked}


@dataclass(frozen=True, slots=True)
class Red:
    """Random early detection (Floyd and Jacobson 1993)."""

    min_bytes: int = size("min", REQUIRED, "Mean queue from which packets are dropped or marked.")
    max_bytes: int = size(
        "max", REQUIRED, "Mean queue at which the probability is reached; beyond, every packet."
    )
    limit_bytes: int = size("limit", None, "Length of the whole queue (4 times `max`).")
    probability: float = share("probability", "2 %", "Probability of dropping or marking at `max`.")
    ecn: bool = flag("ecn", False, "Mark packets that can carry ECN (RFC 3168) instead of dropping.")


class RedKind(QueueKind):
    """Sets and reads back the queue kind `red`."""

    kind = "red"
    meaning = "Random early detection, dropping or marking (ECN)."
    settings = Red
    qdisc = "red"
    trial = "red limit 60000 min 10000 max 30000 avpkt 1000 burst 20"
    module, config = "sch_red", "NET_SCH_RED"
    order = "fifo"
    examples = (
        discipline("red", Red(15_000, 45_000, 180_000, 0.1, True)),
        discipline("red", Red(20_000, 50_000, 190_000, 0.1, False)),
    )

    def planned(self, settings: dict[str, Any], bands: tuple[Band, ...], rate_bps: int) -> Discipline:
        limit = settings["limit_bytes"]
        whole = LIMIT_TO_MAX * settings["max_bytes"] if limit is None else limit
        return Discipline(self.kind, settings | {"limit_bytes": whole})

    def faults(self, wanted: Impairment) -> Iterator[Fault]:
        # The import is here, because every import makes the start of a lab slower.
        from ..language.units import text_bytes

        red = _red(wanted)
        low, high = text_bytes(red.min_bytes), text_bytes(red.max_bytes)
        if not 0 < red.min_bytes < red.max_bytes:
            yield Fault(("min",), low, f"is not above 0 and below max, {high}", "a third of max is usual")
        if red.limit_bytes <= red.max_bytes and red.max_bytes:
            rule = f"is not above max, {high}"
            yield Fault(("limit",), text_bytes(red.limit_bytes), rule, "leave it out: 4 times max")
        if not 0 < red.probability < 1:
            yield Fault(("probability",), None, "is not between 0 and 1", "2 % is usual")

    def words(self, wanted: Impairment) -> str:
        # The import is here, because every import makes the start of a lab slower.
        from ..language.units import text_bytes, text_share

        red = _red(wanted)
        sizes = f"{text_bytes(red.min_bytes)} to {text_bytes(red.max_bytes)}"
        return f"{sizes}, {text_share(red.probability)}" + (", ECN" if red.ecn else "")

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        """Returns tc's line for the queue; the mean covers as many packets as tc-red(8) recommends."""
        red = _red(wanted)
        burst = math.ceil((2 * red.min_bytes + red.max_bytes) / (3 * MEAN_PACKET_BYTES)) + 1
        return [
            at.qdisc(
                QUEUE,
                f"red limit {red.limit_bytes} min {red.min_bytes} max {red.max_bytes} "
                f"avpkt {MEAN_PACKET_BYTES} burst {burst} probability {red.probability:.9g} "
                f"bandwidth {words.bits(wanted.rate_bps)}" + (" ecn" if red.ecn else ""),
            )
        ]

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        """Returns the lines of a change; an empty list if a trace changes only the rate, so that RED keeps
        its mean queue length.
        """
        steered = after.queue is not None and after.queue.steered
        return [] if steered and _red(before) == _red(after) else self.lines(after, at)

    def forget(self, wanted: Impairment, at: Place) -> list[str]:
        return self.lines(wanted, at)

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return (Part(self.kind, QUEUE, marked_at=MARKED_AT),)

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        red, read = _red(wanted), entry(entries, QUEUE).get("options", {})
        asked = {
            "min": red.min_bytes, "max": red.max_bytes, "limit": red.limit_bytes, "ecn": red.ecn
        }  # fmt: skip
        return [
            (f"queue {word}", value, read.get(word))
            for word, value in asked.items()
            if (read.get(word) or 0) != value
        ]

    def packets(self, wanted: Impairment) -> int:
        return _red(wanted).limit_bytes // LEAST_FRAME_BYTES + 1

    def fake(self, arguments: list[str]) -> Entry:
        named = given(arguments)
        return {name: int(named[name]) for name in ("limit", "min", "max")} | {"ecn": "ecn" in arguments}


QUEUE_KIND = RedKind()


def _red(wanted: Impairment) -> Red:
    return settings_of(Red, wanted)
