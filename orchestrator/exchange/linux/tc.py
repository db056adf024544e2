"""Applies the command `tc` to a machine: netem and tbf qdiscs become impairments of an interface."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..network import Machine

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([a-zA-Z%]*)")
# Units of tc (man tc): rates that end in "bps" are bytes a second; a time without a unit is in microseconds.
_RATES = {
    "": 1, "bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12, "kibit": 1024, "mibit": 1024**2,
    "bps": 8, "kbps": 8e3, "mbps": 8e6, "gbps": 8e9,
}  # fmt: skip
_TIMES = {
    "": 1e3, "us": 1e3, "usec": 1e3, "usecs": 1e3, "ms": 1e6, "msec": 1e6, "msecs": 1e6,
    "s": 1e9, "sec": 1e9, "secs": 1e9,
}  # fmt: skip
DISTRIBUTIONS = ("uniform", "normal", "pareto", "paretonormal")
# Settings that every change of netem resets unless it names them (net/sched/sch_netem.c, netem_change);
# others stay.
_RESET = ("delay", "jitter", "loss", "duplicate", "limit")
_PERCENT = {
    "loss": "loss",
    "drop": "loss",
    "corrupt": "corrupt",
    "duplicate": "duplicate",
    "reorder": "reorder",
}


def tc(machine: Machine, words: Sequence[str]) -> int | None:
    """Sets the impairments of an interface from a root netem or tbf qdisc, adds those of a child qdisc,
    changes them as the kernel does, or removes all (`del`). `show` changes nothing. Returns 0, 2 for a second
    root qdisc, or None if the command or one of its
    words has no counterpart.
    """
    plain = [word for word in words if not word.startswith("-")]
    if not plain or not "qdisc".startswith(plain[0]) or len(plain) < 4 or "dev" not in plain[:-1]:
        return 0 if "show" in plain or "ls" in plain else None
    command, port = plain[1], plain[plain.index("dev") + 1]
    if "delete".startswith(command):
        if "parent" in plain:
            return None  # an impairment of one class only
        machine.queues.pop(port, None)
        machine.shaped.discard(port)
        return 0
    if command in ("show", "ls", "list"):
        return 0
    kind = next((word for word in ("netem", "tbf") if word in plain), None)
    command = next((word for word in ("add", "change", "replace") if word.startswith(command)), "")
    if kind is None or not command:
        return None
    at = plain.index(kind)
    if not _placed(plain[2:at]):
        return None
    found: dict[str | None, Any] = dict((_netem if kind == "netem" else _tbf)(plain[at + 1 :]))
    if None in found or not found:
        return None
    own = machine.queues.get(port, {})
    if "root" in plain[:at] and command == "add" and own:
        return 2  # the qdisc exists already
    if "parent" in plain[:at] and not own:
        return None  # an impairment of one class of traffic only
    if port in machine.shaped and "root" in plain[:at]:
        if command == "change":
            return 2  # the root qdisc is of another kind
        own = {}
        machine.shaped.discard(port)
    if command != "add" and kind == "netem":
        own = {key: value for key, value in own.items() if key.removesuffix("_correlation") not in _RESET}
    elif command == "replace":
        own = {}
    machine.queues[port] = {**own, **{key: value for key, value in found.items() if key}}
    return 0


def _placed(words: Sequence[str]) -> bool:
    """Returns whether the words put the qdisc at the interface's root or below the only class of a parent (N:
    or N:1), and contain nothing but that, the interface and a handle.
    """
    given = iter(words)
    for word in given:
        if word in ("dev", "handle"):
            next(given, None)
        elif word == "parent":
            if not re.fullmatch(r"[0-9a-f]+:(1|)", next(given, "")):
                return False
        elif word != "root":
            return False
    return True


def _netem(words: Sequence[str]) -> Iterator[tuple[str | None, Any]]:
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word in ("delay", "latency") and waiting:
            yield "delay", duration(waiting.pop(0))
            if waiting and _NUMBER.fullmatch(waiting[0]):
                yield "jitter", duration(waiting.pop(0))
            if waiting and _NUMBER.fullmatch(waiting[0]):
                yield "delay_correlation", _share(waiting.pop(0))
        elif word == "distribution" and waiting and waiting[0] in DISTRIBUTIONS:
            yield "distribution", waiting.pop(0)
        elif word in _PERCENT and waiting:
            if waiting[0] == "random":
                waiting.pop(0)
            found = _NUMBER.fullmatch(waiting.pop(0)) if waiting else None
            yield (_PERCENT[word], f"{found[1]} %") if found and found[2] in ("", "%") else (None, None)
            if waiting and _NUMBER.fullmatch(waiting[0]):
                yield f"{_PERCENT[word]}_correlation", _share(waiting.pop(0))
        elif word == "rate" and waiting:
            yield "rate", rate(waiting.pop(0))
        elif word == "limit" and waiting and waiting[0].isdecimal():
            yield "limit", int(waiting.pop(0))
        else:
            yield None, None


def _share(text: str) -> str:
    return f"{text.rstrip('%')} %"


def _tbf(words: Sequence[str]) -> Iterator[tuple[str | None, Any]]:
    """Yields ("rate", RATE) for the rate of a tbf; ignores burst, latency and the like, which the lab sets
    itself. Yields (None, None) for an unknown word.
    """
    given = iter(words)
    for word in given:
        value = next(given, "")
        if word == "rate":
            yield "rate", rate(value)
        elif word not in (
            "burst",
            "buffer",
            "maxburst",
            "latency",
            "limit",
            "mtu",
            "minburst",
            "peakrate",
            "mpu",
        ):
            yield None, None


def rate(text: str) -> str:
    """Converts a rate of tc to `N bit/s`; its units in `bps` count bytes. Returns other text unchanged."""
    found = _NUMBER.fullmatch(text.lower())
    if found is None or found[2] not in _RATES:
        return text
    return f"{round(float(found[1]) * _RATES[found[2]])} bit/s"


def duration(text: str) -> str:
    """Converts a time of tc, without a unit in microseconds, to the topology's form in whole s, ms, us or ns.
    Returns other text unchanged.
    """
    found = _NUMBER.fullmatch(text.lower())
    if found is None or found[2] not in _TIMES:
        return text
    nanoseconds = round(float(found[1]) * _TIMES[found[2]])
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if nanoseconds % size == 0:
            return f"{nanoseconds // size} {unit}"
    return f"{nanoseconds} ns"
