"""Simulates `tc` for queues, classes and filters: turns its arguments into the values that a
read-back shows.
"""

from __future__ import annotations

from typing import Any

from orchestrator.queueing.words import RATES, TIMES, scaled

Entry = dict[str, Any]
BITS = 8
KEEPS = {"fq_codel"}  # kinds that keep the options that a change does not name
US = 1e6


def _given(words: list[str]) -> dict[str, str]:
    """Maps each word to the word after it."""
    return dict(zip(words, [*words[1:], ""], strict=True))


def _prio(words: list[str]) -> Entry:
    at = words.index("priomap") + 1
    return {"bands": int(_given(words)["bands"]), "priomap": [int(w) for w in words[at:]]}


def _htb(words: list[str]) -> Entry:
    return {"default": _given(words)["default"]}


def _red(words: list[str]) -> Entry:
    given = _given(words)
    return {name: int(given[name]) for name in ("limit", "min", "max")} | {"ecn": "ecn" in words}


def _fq_codel(words: list[str]) -> Entry:
    given = _given(words)
    times: Entry = {n: round(scaled(given[n], TIMES) * US) for n in ("target", "interval")}
    sizes = {name: int(given[name]) for name in ("flows", "limit") if name in given}
    return sizes | times | {"ecn": "ecn" in words}


def _cake(words: list[str]) -> Entry:
    given = _given(words)
    return {
        "bandwidth": round(scaled(given["bandwidth"], RATES)) // BITS, "diffserv": words[2],
        "flowmode": words[3], "rtt": round(scaled(given["rtt"], TIMES) * US),
    }  # fmt: skip


OPTIONS = {"prio": _prio, "htb": _htb, "red": _red, "fq_codel": _fq_codel, "cake": _cake}


def of_class(words: list[str]) -> Entry:
    """Returns the read-back of `class replace dev DEVICE parent P classid C htb rate R ceil C ...`."""
    given = _given(words)
    rates = {name: scaled(given[name], RATES) / BITS for name in ("rate", "ceil")}
    return {"class": "htb", "handle": given["classid"], **rates}


def of_filter(words: list[str]) -> Entry:
    """Returns the read-back of `filter add dev DEVICE parent P protocol X pref N KIND KEYS... classid C`."""
    given, at = _given(words), words.index("pref") + 2
    keys, rest = [], words[at + 1 : words.index("classid")]
    while rest and rest[0] == "match":  # match u32 0xVALUE 0xMASK at N
        keys.append(f"match {rest[2][2:]}/{rest[3][2:]} at {rest[5]}")
        rest = rest[6:]
    keys += [" ".join(rest)] if rest else []
    return {
        "filter": words[at], "protocol": given["protocol"], "pref": int(given["pref"]),
        "to": given["classid"], "keys": keys,
    }  # fmt: skip
