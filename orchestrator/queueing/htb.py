"""Implements the queue kind `htb`: classes with guaranteed and ceiling rates; the kernel's
net/sched/sch_htb.c.

Classes share the rate that others leave unused in proportion to their guaranteed rates: each sends its
quantum in turn.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any

from contract.plan import Band, Discipline, Impairment

from . import matching, prio, words
from .discipline import LEAF, QUEUE, Bands, Fault, Part, Place, QueueKind, differing, entry, given, leaf_parts
from .kind import Entry, Mismatch
from .settings import REQUIRED, Key
from .tbf import RATE_TOLERANCE_BPS, bucket_bytes

ROOT, FIRST = 1, 0x10  # minor numbers of the whole rate's class and of the first class below it
SHOWN_DIGITS = 1e-3  # relative rounding of the rates that tc shows
_SHOWN = re.compile(r"^class htb (\S+) (?:.*?\bprio (\d+) )?.*?\brate (\S+) ceil (\S+)", re.MULTILINE)
LARGEST_QUANTUM = 200_000  # bytes; the kernel warns of larger ones


_EXAMPLE = (
    Band("voice", dscp=(46,), limit_packets=20, rate_bps=2_000_000, ceil_bps=5_000_000),
    Band("rest", limit_packets=60, rate_bps=6_000_000, ceil_bps=8_000_000),
)


class HtbKind(QueueKind):
    """Sets and reads back the queue kind `htb`."""

    kind = "htb"
    meaning = "Classes with guaranteed and ceiling rates; they borrow what others leave."
    bands = Bands(
        "RateClass",
        "A band with rates of its own.",
        most=64,
        keys={
            "rate_bps": Key("rate", "rate", REQUIRED, "Guaranteed rate, for any load of the other bands."),
            "ceil_bps": Key(
                "ceil",
                "rate",
                None,
                "Ceiling rate, when other bands leave capacity; by default the whole rate.",
            ),
            "ahead": Key(
                "ahead",
                "flag",
                False,
                "Serve this band before all others, while it keeps within its guaranteed rate.",
            ),
        },
    )
    root = qdisc = "htb"
    trial = "htb default 1"
    module, config = "sch_htb", "NET_SCH_HTB"
    shapes = counts = True  # tc_htb_glob.direct_pkts is such a counter
    outages = False  # no, because each class would send one frame
    order = "guarantee"
    examples = (
        Discipline("htb", bands=_EXAMPLE),
        Discipline(
            "htb",
            bands=(dataclasses.replace(_EXAMPLE[0], rate_bps=3_000_000, ceil_bps=4_000_000), _EXAMPLE[1]),
        ),
    )

    def planned(self, settings: dict[str, Any], bands: tuple[Band, ...], rate_bps: int) -> Discipline:
        whole = (dataclasses.replace(one, ceil_bps=one.ceil_bps or rate_bps) for one in bands)
        return Discipline(self.kind, settings, tuple(whole))

    def faults(self, wanted: Impairment) -> Iterator[Fault]:
        # The import is here, because every import makes the start of a lab slower.
        from ..language.units import text_bps

        whole = wanted.rate_bps
        for one in _classes(wanted):
            rate, ceil = text_bps(one.rate_bps), text_bps(one.ceil_bps)
            if not one.rate_bps:
                yield Fault((one.name, "rate"), "0", "guarantees nothing", "write at least 8 kbit/s")
            if one.ceil_bps != whole and one.ceil_bps < one.rate_bps:
                rule = f"is below the guaranteed {rate}"
                yield Fault((one.name, "ceil"), ceil, rule, "raise it, or lower `rate`")
            if whole and one.ceil_bps > whole:
                rule = f"is above the whole rate, {text_bps(whole)}"
                yield Fault((one.name, "ceil"), ceil, rule, "lower it, or leave it out")
        total = sum(one.rate_bps for one in _classes(wanted))
        if whole and total > whole:
            rule = f"guarantees {text_bps(total)} in all, of a rate of {text_bps(whole)}"
            yield Fault((), None, rule, "lower the classes' rates")

    def trace_faults(self, wanted: Impairment, slowest_bps: int, least_bps: int) -> Iterator[Fault]:
        # The import is here, because every import makes the start of a lab slower.
        from ..language.units import text_bps

        for one in _classes(wanted):
            if one.rate_bps and one.rate_bps * slowest_bps < least_bps * wanted.rate_bps:
                rule = (
                    f"keeps its share of the rate, and has less than {text_bps(least_bps)} of the trace's "
                    f"{text_bps(slowest_bps)}"
                )
                yield Fault((one.name,), None, rule, "raise one of the two")

    def impossible(self, wanted: Impairment) -> str | None:
        """Returns the reason why the classes' rates are impossible: they must satisfy 0 < guaranteed <=
        ceiling <= rate of the link, and the guaranteed rates together may not exceed the link's rate. None if
        they are possible.
        """
        # The import is here, because every import makes the start of a lab slower.
        from ..language.units import text_bps

        for one in _classes(wanted):
            rates = one.rate_bps, one.ceil_bps, wanted.rate_bps
            if not 0 < rates[0] <= rates[1] <= rates[2]:
                said = "guaranteed {}, ceiling {}, link {}".format(*map(text_bps, rates))
                return f"class {one.name}: {said}: not in rising order; change them together"
        total, whole = sum(one.rate_bps for one in _classes(wanted)), wanted.rate_bps
        if total > whole:
            said = f"{text_bps(total)} of {text_bps(whole)}"
            return f"the classes are guaranteed {said}; lower one of them first"
        return None

    def at_rate(self, queue: Discipline, before_bps: int, after_bps: int) -> Discipline:
        """Returns the queue with the rates of its classes changed in proportion to the direction's rate."""
        scaled = (
            dataclasses.replace(
                one,
                rate_bps=one.rate_bps * after_bps // before_bps,
                ceil_bps=one.ceil_bps * after_bps // before_bps,
            )
            for one in queue.bands
        )
        return dataclasses.replace(queue, bands=tuple(scaled))

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
        """Returns lines that change rates and queue lengths while packets wait; None if names, filters or
        priorities of classes differ.
        """
        old, new = _classes(before), _classes(after)
        if [_kind_of(one) for one in old] != [_kind_of(one) for one in new]:
            return None
        longer = [
            _leaf(at, i, n)
            for i, (o, n) in enumerate(zip(old, new, strict=True))
            if o.limit_packets != n.limit_packets
        ]
        return _rates(after, at.device) + longer

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
        for one, handle in zip(classes, _targets(classes), strict=True):
            asked, read = _priority(one, classes), entry(entries, handle).get("prio", 0)
            found += [(f"queue {one.name} prio", asked, read)] if asked != read else []
        found += prio.leaves(classes, entries)
        return found + matching.mismatches(classes, _targets(classes), entries)

    def packets(self, wanted: Impairment) -> int:
        return sum(one.limit_packets for one in _classes(wanted))

    def lone_bps(self, wanted: Impairment) -> int:
        return next(one.ceil_bps for one in _classes(wanted) if one.rest)

    def at_once_bytes(self, wanted: Impairment) -> int:
        return bucket_bytes(wanted.rate_bps, wanted.frame_bytes)

    def fake(self, arguments: list[str]) -> Entry:
        return {"default": given(arguments)["default"]}


QUEUE_KIND = HtbKind()


def entries(device: str, text: str) -> list[Entry]:
    """Parses the classes in the output of `tc class show dev DEVICE`; rates in bytes per second, as tc stores
    them, and the priority if it is not 0, the first. The input is text, since iproute2 6.1 has no JSON for
    classes.
    """
    return [
        {"class": "htb", "dev": device, "handle": handle, "rate": _bytes(rate), "ceil": _bytes(ceil)}
        | ({"prio": int(prio)} if int(prio or 0) else {})
        for handle, prio, rate, ceil in _SHOWN.findall(text)
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
        line = _class(device, f"{QUEUE}{ROOT:x}", FIRST + index, rates, wanted.frame_bytes, share)
        priority = _priority(one, classes)
        found.append(f"{line} prio {priority}" if priority else line)
    return found


def _priority(one: Band, classes: Sequence[Band]) -> int:
    """Returns the kernel's priority of a class: among the classes within their rates it serves the lowest
    number first. The others have a priority other than 0 only if one class goes first.
    """
    return int(not one.ahead and any(other.ahead for other in classes))


def _kind_of(one: Band) -> object:
    """Returns the settings of a class that cannot change while packets wait."""
    return one.name, one.pcp, one.dscp, one.ports, one.ahead


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
