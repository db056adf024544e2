"""Enters commands in the registry: their description for readers and their costs."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Software

from ..accounting import numbered
from ..kind import Costs, Kind
from ..sending import rate_words
from .checks import check
from .file import Command
from .planning import plan

MEMORY_BYTES = 10_000_000  # a guess: the program is unknown


def _words(software: Software, flows: Sequence[Flow]) -> str:
    assert software.process is not None
    command = " ".join(" ".join(software.process.argv).removeprefix("sh -c ").split())
    shown = command if len(command) <= 48 else command[:45] + "..."
    sent = [f"{flow.pattern} of {flow.payload.bytes} B, {rate_words(flow)}" for flow in flows]
    return "; ".join([shown, *sent])


def _costs(software: Software, _flows: Sequence[Flow]) -> Costs:
    to = {one["address"] for flow in software.spec.get("accounts", {}).get("sends", ()) for one in flow["to"]}
    return Costs(memory_bytes=MEMORY_BYTES, peers=len(to))


KIND = Kind(
    name="command",
    key="command",
    model=Command,
    what="a command",
    example="command: [iperf3, -s]",
    check=check,
    plan=plan,
    words=_words,
    costs=_costs,
    in_agent=False,
    endpoint=lambda command: bool(command.flows) or command.receives,
    numbered=numbered,
    titles={
        "Command": "software.NAME: a command",
        "Ready": "command's ready",
        "CommandFlow": "command's flows.NAME",
        "GuaranteeOptions": "command's flows.NAME.guarantee",
    },
)
