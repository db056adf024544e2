"""Compares the clients that brokers admitted with the topology's expectation: a run in which a client was
refused each time has measured less than its file requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contract.plan import Plan
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning
from orchestrator.lab.lab import Lab

REFUSALS = ("refused: ", "TLS: ")  # prefixes of a broker's and of TLS's reason in the agent's records
EXPECT = "correct login or certificates, or write `admission: refused` where a refusal is expected"
ADMIT = "leave `admission: refused` out, or have the broker refuse it"
REACH = "a refusal cannot be told from no answer: look at its records in raw/messages.csv"
Fault = tuple[str, str]  # sentence and remedy


def insist(lab: Lab, all_connected: bool) -> None:
    """Raises LabError if a client was refused each time, or admitted although the file's `admission` expects
    a refusal; warns instead if the file has `on_node_failure: continue`. Does nothing without records of
    messages. Also does nothing if the file expects no refusal and `all_connected` is true (all clients were
    connected at one moment).
    """
    barred = unwelcome(lab.plan)
    records = lab.run_dir / "raw" / "messages.csv"
    if (all_connected and not barred) or not records.exists():
        return
    clients = _clients(lab.plan)
    found = faults({name: why for name, why in admissions(records).items() if name in clients}, barred)
    if found and lab.plan.on_node_failure == "abort":
        raise LabError("; ".join(f"{text}; {remedy}" for text, remedy in found))
    for text, remedy in found:
        lab.events.warn(Warning("admission", text, remedy))


def unwelcome(plan: Plan) -> frozenset[str]:
    """Returns the endpoints of the MQTT sessions that the topology expects a broker to reject."""
    return frozenset(name for name, spec in _clients(plan).items() if spec.get("admission") == "refused")


def _clients(plan: Plan) -> dict[str, dict[str, Any]]:
    """Returns the settings of each MQTT client, by its endpoint; clients of other kinds have no key
    `admission`.
    """
    return {
        software.session.endpoint: software.spec
        for node in plan.nodes
        for software in node.software
        if software.session is not None and software.kind == "mqtt"
    }


def admissions(records: Path) -> dict[str, str]:
    """Reads the records of messages. Returns for each session, by its endpoint, the reason of its last
    refusal, or an empty text if it was ever admitted; omits sessions that were neither refused nor admitted.
    """
    found: dict[str, str] = {}
    with records.open(errors="replace") as lines:
        for line in lines:
            # the last line of the file may be incomplete
            if not line.startswith("C,") or line.count(",") < 4:
                continue
            _, endpoint, what, _, detail = line.rstrip("\n").split(",", 4)
            if what == "connected":
                found[endpoint] = ""
            elif found.get(endpoint) != "" and detail.startswith(REFUSALS):
                found[endpoint] = detail
    return found


def faults(found: Mapping[str, str], barred: frozenset[str]) -> list[Fault]:
    """Returns a fault for each reason of a refusal that the file does not expect. Also returns one for
    clients that were admitted although the file expects a refusal, and one for clients that were neither
    admitted nor refused.
    """
    refused: dict[str, list[str]] = {}
    for endpoint, reason in found.items():
        if reason and endpoint not in barred:
            refused.setdefault(reason, []).append(endpoint)
    told = [
        (f"{_named(clients)}: no attempt to connect succeeded: {reason}", EXPECT)
        for reason, clients in refused.items()
    ]
    admitted = [endpoint for endpoint in sorted(barred) if found.get(endpoint) == ""]
    silent = sorted(barred - found.keys())
    if admitted:
        told.append((f"{_named(admitted)}: admitted, though the file has `admission: refused`", ADMIT))
    if silent:
        told.append((f"{_named(silent)}: not refused: no attempt to connect had an answer", REACH))
    return told


def _named(clients: list[str]) -> str:
    """Returns the first client's name, and how many further clients there are."""
    others = len(clients) - 1
    return clients[0] + (f" and {others} more client{'s' * (others > 1)}" if others else "")
