"""Implements the queue kind `htb`: classes with guaranteed and ceiling rates; the kernel's
net/sched/sch_htb.c.

Classes share the rate that others leave unused in proportion to their guaranteed rates: each sends its
quantum in turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from contract.plan import Band, Impairment

from . import matching, prio, words
from .discipline import LEAF, QUEUE, Part, Place, differing, entry, leaf_parts
from .kind import Entry, Mismatch
from .tbf import RATE_TOLERANCE_BPS, bucket_bytes

ROOT, FIRST = 1, 0x10  # minor numbers of the whole rate's class and of the first class below it
SHOWN_DIGITS = 1e-3  # relative rounding of the rates that tc shows
_SHOWN = re.compile(r"^class htb (\S+) .*?\brate (\S+) ceil (\S+)", re.MULTILINE)
LARGEST_QUANTUM = 200_000  # the kernel warns of more


class HtbRoom:
    """Sets and reads back the queue kind `htb`."""

    kind = "htb"
    root = "htb"
    shapes = True

    def lines(self, wanted: Impairment, at: Place) -> list[str]:
        classes = _classes(wanted)
        rest = next(i for i, one in enumerate(classes) if one.rest)
        return [
            at.qdisc(QUEUE, f"htb default 0x{FIRST + rest:x}"),
            *_rates(wanted, at.device),
            *(_leaf(at, i, one) for i, one in enumerate(classes)),
            *matching.lines(at.device, classes, _targets(classes)),
        ]

    def changes(self, before: Impairment, after: Impairment, at: Place) -> list[str] | None:
        """Returns lines that change rates and queue lengths while packets wait; None if names or filters of
        classes differ.
        """
        old, new = _classes(before), _classes(after)
        if [(o.name, o.pcp, o.dscp, o.ports) for o in old] != [(n.name, n.pcp, n.dscp, n.ports) for n in new]:
            return None
        longer = [
            _leaf(at, i, n)
            for i, (o, n) in enumerate(zip(old, new, strict=True))
            if o.limit_packets != n.limit_packets
        ]
        return _rates(after, at.device) + longer

    def forget(self, wanted: Impairment, at: Place) -> list[str]:
        return []

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        return leaf_parts(_classes(wanted))

    def mismatches(self, wanted: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        classes, found = _classes(wanted), list[Mismatch]()
        rest = next(i for i, one in enumerate(classes) if one.rest)
        default = entry(entries, QUEUE).get("options", {}).get("default")
        if default != f"0x{FIRST + rest:x}":
            found.append(("queue default", f"0x{FIRST + rest:x}", default))
        whole = ("all", wanted.rate_bps, wanted.rate_bps, f"{QUEUE}{ROOT:x}")
        each = [
            (c.name, c.rate_bps, c.ceil_bps, to) for c, to in zip(classes, _targets(classes), strict=True)
        ]
        for name, rate, ceil, handle in (whole, *each):
            read = entry(entries, handle)
            found += differing([
                (f"queue {name} {word}", asked, 8 * read[word] if word in read else None, _tolerance(asked))
                for word, asked in (("rate", rate), ("ceil", ceil))
            ])  # fmt: skip
        found += prio.leaves(classes, entries)
        return found + matching.mismatches(classes, _targets(classes), entries)

    def packets(self, wanted: Impairment) -> int:
        return sum(one.limit_packets for one in _classes(wanted))

    def lone_bps(self, wanted: Impairment) -> int:
        return next(one.ceil_bps for one in _classes(wanted) if one.rest)

    def at_once_bytes(self, wanted: Impairment) -> int:
        return bucket_bytes(wanted.rate_bps, wanted.frame_bytes)


ROOM = HtbRoom()


def entries(device: str, text: str) -> list[Entry]:
    """Parses the classes in the output of `tc class show dev DEVICE`; rates in bytes per second, as tc stores
    them. The input is text, since iproute2 6.1 has no JSON for classes.
    """
    return [
        {"class": "htb", "dev": device, "handle": handle, "rate": _bytes(rate), "ceil": _bytes(ceil)}
        for handle, rate, ceil in _SHOWN.findall(text)
    ]


def _bytes(rate: str) -> float:
    return words.scaled(rate.lower(), words.RATES) / 8


def _classes(wanted: Impairment) -> tuple[Band, ...]:
    return wanted.queue.bands if wanted.queue is not None else ()


def _rates(wanted: Impairment, device: str) -> list[str]:
    classes = _classes(wanted)
    least = min(one.rate_bps for one in classes)
    found = [_class(device, QUEUE, ROOT, (wanted.rate_bps, wanted.rate_bps), wanted.frame_bytes, 1)]
    for index, one in enumerate(classes):
        rates, share = (one.rate_bps, one.ceil_bps), one.rate_bps / least
        found.append(_class(device, f"{QUEUE}{ROOT:x}", FIRST + index, rates, wanted.frame_bytes, share))
    return found


def _class(device: str, parent: str, minor: int, rates: tuple[int, int], frame: int, share: float) -> str:
    rate, ceil = rates
    quantum = min(LARGEST_QUANTUM, round(frame * share))
    return (
        f"class replace dev {device} parent {parent} classid {QUEUE}{minor:x} htb "
        f"rate {words.bits(rate)} ceil {words.bits(ceil)} "
        f"burst {bucket_bytes(rate, frame)} cburst {bucket_bytes(ceil, frame)} quantum {quantum}"
    )


def _leaf(at: Place, index: int, one: Band) -> str:
    return at.below(QUEUE, FIRST + index).qdisc(f"{LEAF + index:x}:", f"pfifo limit {one.limit_packets}")


def _targets(classes: Sequence[Band]) -> list[str]:
    return [f"{QUEUE}{FIRST + index:x}" for index in range(len(classes))]


def _tolerance(rate_bps: int) -> float:
    return RATE_TOLERANCE_BPS + SHOWN_DIGITS * rate_bps
