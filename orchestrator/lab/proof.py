"""The proof of links: sends probes through the driver and has their answers judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from orchestrator.lab.clock import SECOND
from orchestrator.lab.judge import judge
from orchestrator.lab.judgement import Judgement, Seen
from orchestrator.lab.operations import Call, Probed, Prove
from orchestrator.lab.probes import burst_probes, spaced_probes
from orchestrator.model import Link


def prove(links: Sequence[Link], call: Call) -> list[Judgement]:
    """Probe all directions (`call` is the driver's) and judge them; takes a few seconds at most."""
    if not links:
        return []
    answers: list[list[Probed]] = []
    for probes in (spaced_probes(links), burst_probes(links)):
        longest = max((p["timeout_ns"] + p["count"] * p["interval_ns"] for p in probes), default=0)
        answers.append(call(Prove(probes), patience_ns=longest + 20 * SECOND)["probes"] if probes else [])
    spaced, burst = ({(p["link"], p["direction"]): _seen(p) for p in probed} for probed in answers)
    return judge(links, spaced, burst)


def _seen(p: Probed) -> Seen:
    return Seen(p["sent"], p["received"], p["duplicates"], p["corrupted"], p["delays_ns"], p["arrivals_ns"])


def to_json(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    return [asdict(j) for j in judgements]
