"""Simulates `tc` for queues, classes and filters: turns its arguments into the values that a
read-back shows.
"""

from __future__ import annotations

from typing import Any

from orchestrator.queueing import QUEUE_KINDS
from orchestrator.queueing.discipline import given
from orchestrator.queueing.words import RATES, scaled

Entry = dict[str, Any]
BITS = 8


def options(kind: str, arguments: list[str]) -> Entry | None:
    """Returns the options that tc would show for a qdisc of that name; None if no kind of queue uses such a
    qdisc.
    """
    queue_kind = next((one for one in QUEUE_KINDS.values() if one.qdisc == kind), None)
    return queue_kind.fake(arguments) if queue_kind is not None else None


def keeps(kind: str) -> bool:
    """Returns whether a change of this qdisc keeps the options that the change does not name."""
    return any(queue_kind.keeps for queue_kind in QUEUE_KINDS.values() if queue_kind.qdisc == kind)


def of_class(words: list[str]) -> Entry:
    """Returns the values that a read-back shows of the class `class replace dev DEVICE parent P classid C htb
    rate R ceil C ...`, with the priority if it is given.
    """
    named = given(words)
    rates = {name: scaled(named[name], RATES) / BITS for name in ("rate", "ceil")}
    priority = {"prio": int(named["prio"])} if "prio" in named else {}
    return {"class": "htb", "handle": named["classid"], **rates, **priority}


def of_filter(words: list[str]) -> Entry:
    """Returns the values that a read-back shows of the filter `filter add dev DEVICE parent P protocol X pref
    N KIND KEYS... classid C`.
    """
    named, at = given(words), words.index("pref") + 2
    keys, rest = [], words[at + 1 : words.index("classid")]
    while rest and rest[0] == "match":  # the words are: match u32 0xVALUE 0xMASK at N
        keys.append(f"match {rest[2][2:]}/{rest[3][2:]} at {rest[5]}")
        rest = rest[6:]
    keys += [" ".join(rest)] if rest else []
    return {
        "filter": words[at], "protocol": named["protocol"], "pref": int(named["pref"]),
        "to": named["classid"], "keys": keys,
    }  # fmt: skip
