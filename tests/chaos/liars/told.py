"""Defines liars in the lab's own statements: plan, manifest, proof, events."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from liars.files import MS, SECOND, document, lines
from liars.liar import Liar

PLAN, MANIFEST, PROOF, EVENTS = "plan.json", "manifest.json", "proof.json", "raw/events.jsonl"


def in_plan(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    return lambda run: document(run, PLAN, change)


def in_manifest(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    return lambda run: document(run, MANIFEST, change)


def in_proof(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    return lambda run: document(run, PROOF, lambda all_of: [change(one) for one in all_of])


def in_events(change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Callable[[Path], None]:
    def lie(run: Path) -> None:
        lines(run, EVENTS, lambda all_of: [
            json.dumps(new) for line in all_of if (new := change(json.loads(line))) is not None
        ])  # fmt: skip

    return lie


def flow_of(plan: dict[str, Any], sender: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in plan["flows"] if one["sender"] == sender)
    return found


def one_class(plan: dict[str, Any]) -> None:
    """Gives two flows the same name and class."""
    flow_of(plan, "e").update(
        name=flow_of(plan, "a")["name"], traffic_class=flow_of(plan, "a")["traffic_class"]
    )


def flows_exchanged(plan: dict[str, Any]) -> None:
    flows = plan["flows"]
    one, two = flows.index(flow_of(plan, "a")), flows.index(flow_of(plan, "e"))
    flows[one], flows[two] = flows[two], flows[one]


def other_delay(plan: dict[str, Any]) -> None:
    for link in plan["links"]:
        if link["name"] == "p":
            link["forward"]["impairment"]["delay_ns"] = 1 * MS


def hold_later(m: dict[str, Any]) -> None:
    begin, end = m["phases"]["hold"]
    m["phases"]["hold"] = [begin + 6 * SECOND, end]


def hold_longer(m: dict[str, Any]) -> None:
    begin, end = m["phases"]["hold"]
    m["phases"]["hold"] = [begin, end + 12 * SECOND]


def clock_back(m: dict[str, Any]) -> None:
    """Moves all times of the scenario one hour back, before the scenario's records."""
    m["t0_ns"] -= 3600 * SECOND
    m["phases"] = {name: [at - 3600 * SECOND for at in span] for name, span in m["phases"].items()}


def measured(one: dict[str, Any]) -> str:
    """Returns the key of the measured value, which depends on the version that wrote the proof."""
    return "measured" if "measured" in one else "realised"


def proof_better(one: dict[str, Any]) -> None:
    """Replaces the measured delay of link p by a better one."""
    if one["link"] == "p" and one["quantity"] == "delay":
        one |= {measured(one): 1e6, "low": 1e6, "high": 1e6}


def proof_holds(one: dict[str, Any]) -> None:
    """Changes the verdict on the delay of link p, which failed, to "holds"."""
    if one["link"] == "p" and one["quantity"] == "delay":
        one |= {measured(one): 15e6, "low": 14.9e6, "high": 15.1e6, "verdict": "holds"}


LIARS = (
    Liar("two-flows-one-name", "two flows bear one name and class", in_plan(one_class)),
    Liar("plan-flows-exchanged", "two flows in the plan for one another", in_plan(flows_exchanged)),
    Liar("plan-delay", "the plan says 1 ms of a link of 10", in_plan(other_delay)),
    Liar("hold-later", "the hold begins 6 s later than it did", in_manifest(hold_later)),
    Liar("hold-longer", "the hold lasts twice as long as it did", in_manifest(hold_longer)),
    Liar("phases-an-hour-off", "phases an hour before the records", in_manifest(clock_back)),
    Liar(
        "totals-of-another-run",
        "the programs counted other messages",
        in_manifest(lambda m: m["totals"].update(received=m["totals"]["received"] - 7)),
    ),
    Liar("proof-of-another-link", "a proof's measured delay is another link's", in_proof(proof_better)),
    Liar("proof-called-holding", "a proof outside its tolerance says that it holds", in_proof(proof_holds)),
    Liar(
        "event-later",
        "an event's time is 2 s later than it was",
        in_events(lambda e: {**e, "t_ns": e["t_ns"] + 2 * SECOND}),
    ),
    Liar("event-lost", "no line of an event that was carried out", in_events(lambda e: None)),
    Liar(
        "event-called-undone",
        "an event that was carried out is said to have failed",
        in_events(lambda e: {**e, "ok": False}),
    ),
)
