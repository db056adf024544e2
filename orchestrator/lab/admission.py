"""Compares which clients their brokers admitted with what the topology expects: a run in which a client was
refused each time has measured less than its file asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from contract.plan import Plan
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning
from orchestrator.lab.lab import Lab

REFUSALS = ("refused: ", "TLS: ")  # how the agent's records begin the reason of a broker or of TLS
REMEDY = "correct login or certificates, or write `admission: refused` where a refusal is expected"


def insist(lab: Lab, all_connected: bool) -> None:
    """Raises LabError if a client was refused each time, or admitted against the file's `admission`; warns
    instead if the file has `on_node_failure: continue`. Does nothing without records of messages, or if
    `all_connected` (all clients were connected at one moment) and the file expects no refusal.
    """
    barred = unwelcome(lab.plan)
    records = lab.run_dir / "raw" / "messages.csv"
    if (all_connected and not barred) or not records.exists():
        return
    found = faults(admissions(records), barred)
    for text in found:
        if lab.plan.on_node_failure == "abort":
            raise LabError(f"{text}; {REMEDY}")
        lab.events.warn(Warning("admission", text, REMEDY))


def unwelcome(plan: Plan) -> frozenset[str]:
    """Returns the endpoints of the sessions that the topology expects to be refused."""
    return frozenset(
        software.session.endpoint
        for node in plan.nodes
        for software in node.software
        if software.session is not None and software.spec.get("admission") == "refused"
    )


def admissions(records: Path) -> dict[str, str]:
    """Reads the records of messages. Returns for each session, by its endpoint, the reason of its last
    refusal, or an empty text if it was ever admitted; nothing for sessions that were neither.
    """
    found: dict[str, str] = {}
    with records.open(errors="replace") as lines:
        for line in lines:
            if not line.startswith("C,"):
                continue
            _, endpoint, what, _, detail = line.rstrip("\n").split(",", 4)
            if what == "connected":
                found[endpoint] = ""
            elif found.get(endpoint) != "" and detail.startswith(REFUSALS):
                found[endpoint] = detail
    return found


def faults(found: Mapping[str, str], barred: frozenset[str]) -> list[str]:
    """Returns a sentence for each reason of a refusal that the file does not expect, and one for clients that
    were admitted, or never reached a refusal, though it expects one.
    """
    refused: dict[str, list[str]] = {}
    for endpoint, reason in found.items():
        if reason and endpoint not in barred:
            refused.setdefault(reason, []).append(endpoint)
    sentences = [
        f"{_named(clients)}: no attempt to connect succeeded: {reason}" for reason, clients in refused.items()
    ]
    admitted = [endpoint for endpoint in sorted(barred) if not found.get(endpoint, "")]
    if admitted:
        sentences.append(f"{_named(admitted)}: not refused, though the file has `admission: refused`")
    return sentences


def _named(clients: list[str]) -> str:
    more = f" and {len(clients) - 1} more clients" if len(clients) > 1 else ""
    return f"{clients[0]}{more}"
