"""Writes changes of links as timeline events, which the user can paste into a topology file."""

from __future__ import annotations

from typing import Any

from contract.codec import build
from contract.plan import Discipline
from orchestrator import queueing
from orchestrator.cli.link import SIDES

Json = dict[str, Any]
DISTRIBUTIONS = ("uniform", "normal", "pareto", "paretonormal")
CORRELATED = ("delay", "loss", "duplicate", "corrupt", "reorder")
BURSTS = ("good_to_bad", "bad_to_good", "loss_in_bad", "loss_in_good")


def snippet(link: str, answer: Json, wanted: Json) -> str:
    """Returns the change `wanted` of a link, with the values of the lab's answer, as a timeline event without
    its time: `link-down`, `link-up` or `impair`.
    """
    for word in ("down", "up"):
        if wanted.get(word):
            return f"link-{word}: {link}"
    limited = "limit" in (wanted.get("changes") or {})
    shown = {side: _impairment(answer[side], limited) for side in SIDES if answer.get(side)}
    if len(shown) == 2 and shown["forward"] == shown["reverse"]:
        return f"impair: {link}, both: {{{shown['forward']}}}"
    return f"impair: {link}, " + ", ".join(f"{side}: {{{text}}}" for side, text in shown.items())


def left_out(answer: Json) -> str:
    """Returns those properties of the link that the snippet lacks and the user must add; "" if there are
    none.
    """
    found = []
    for asked in (answer[side] for side in SIDES if answer.get(side)):
        found += ["slot"] if asked.get("slot") else []
        found += ["delays"] if asked.get("distribution", "uniform") not in DISTRIBUTIONS else []
    return ", ".join(dict.fromkeys(found))


def _impairment(asked: Json, limited: bool) -> str:
    from orchestrator.language.units import text_bps, text_ns, text_share

    parts = {name: text_ns(asked[f"{name}_ns"]) for name in ("delay", "jitter") if asked.get(f"{name}_ns")}
    if asked.get("distribution", "uniform") in DISTRIBUTIONS[1:]:
        parts["distribution"] = asked["distribution"]
    for name in ("loss", "duplicate", "corrupt", "reorder"):
        if asked.get(name):
            parts[name] = text_share(asked[name])
    for name in CORRELATED:
        if asked.get(f"{name}_correlation"):
            parts[f"{name}_correlation"] = text_share(asked[f"{name}_correlation"])
    if asked.get("gemodel"):
        shares = zip(BURSTS, asked["gemodel"], strict=True)
        parts["gilbert_elliott"] = _mapping({name: text_share(share) for name, share in shares})
    if asked.get("rate_bps"):
        parts["rate"] = text_bps(asked["rate_bps"])
    if limited:
        parts["limit"] = str(asked["limit_packets"])
    if asked.get("queue"):
        parts["queue"] = queueing.written(build(Discipline, asked["queue"]))
    if asked.get("backpressure") and parts.keys() <= {"rate", "limit", "queue"}:
        parts["backpressure"] = "true"
    return ", ".join(f"{name}: {text}" for name, text in parts.items())


def _mapping(parts: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {text}" for name, text in parts.items()) + "}"
