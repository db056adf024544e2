"""Builds the settings of programs that account for their own messages: the key `accounts` of their `spec`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from contract.plan import Flow, Software

from .kind import Ledger
from .scene import Placed, Scene


def told(placed: Placed, sends: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Returns the settings of a program as far as they are known before flows have numbers: its endpoint and
    the flows that it sends. `receives` is empty, and the scenario's start, `t0_ns`, is None.
    """
    return {"endpoint": placed.endpoint, "t0_ns": None, "sends": list(sends), "receives": []}


def to_send(scene: Scene, placed: Placed, flow: Flow, to: Sequence[Placed]) -> dict[str, Any]:
    """Returns a flow that the program sends: its name, and the endpoint and address of each receiver."""
    addresses = [scene.address(one.node, placed.node) for one in to]
    peers = [
        {"endpoint": one.endpoint, "address": address} for one, address in zip(to, addresses, strict=True)
    ]
    return {"name": flow.name, "to": peers}


def numbered(software: Software, ledger: Ledger) -> Software:
    """Returns the software with the numbers of the flows that it sends, and with the flows that it
    receives; software without a session comes back unchanged.
    """
    if software.session is None:
        return software
    said = software.spec["accounts"]
    sends = [_sent(one, ledger) for one in said["sends"]]
    receives = [_received(number, ledger) for number in ledger.to.get(software.session.endpoint, ())]
    accounts = {**said, "sends": sends, "receives": receives}
    return dataclasses.replace(software, spec={**software.spec, "accounts": accounts})


def _sent(said: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
    number = ledger.numbers[said["name"]]
    whole = _plain(ledger.flows[number])
    kept = ("pattern", "payload", "reply", "schedule", "start_ns", "stop_ns", "deadline_ns")
    return {"number": number, **said, "class": whole["traffic_class"], **{key: whole[key] for key in kept}}


def _received(number: int, ledger: Ledger) -> dict[str, Any]:
    flow = _plain(ledger.flows[number])
    kept = ("name", "sender", "pattern", "payload", "reply")
    return {"number": number, **{key: flow[key] for key in kept}, "greedy": flow["schedule"] is None}


def _plain(flow: Flow) -> dict[str, Any]:
    data = dataclasses.asdict(flow)
    if flow.schedule is not None:
        data["schedule"]["rates"] = list(data["schedule"]["rates"])
    return data
