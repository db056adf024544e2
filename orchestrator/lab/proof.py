"""The proof of links: sends probes through the driver and has their answers judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from orchestrator.lab.clock import SECOND
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.judge import judge
from orchestrator.lab.judgement import Judgement, Seen
from orchestrator.lab.probes import burst_probes, spaced_probes
from orchestrator.model import Link


def prove(links: Sequence[Link], call: Callable[..., Message]) -> list[Judgement]:
    """Probe all directions (`call` is the driver's) and judge them; takes a few seconds at most."""
    if not links:
        return []
    answers: list[Message] = []
    for probes in (spaced_probes(links), burst_probes(links)):
        longest = max((p["timeout_ns"] + p["count"] * p["interval_ns"] for p in probes), default=0)
        answer = call("prove", probes=probes, patience_ns=longest + 20 * SECOND) if probes else {"probes": []}
        answers.append(answer)
    spaced, burst = ({(a["link"], a["direction"]): seen(a) for a in answer["probes"]} for answer in answers)
    return judge(links, spaced, burst)


def seen(answer: Message) -> Seen:
    return Seen(**{name: answer[name] for name in Seen.__slots__})


def to_json(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    return [asdict(j) for j in judgements]
