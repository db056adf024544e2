"""Checks and plans the flows of a program that accounts for its own messages."""

from __future__ import annotations

import dataclasses
from typing import Any

from contract.plan import Delivery, Flow, Guarantee, Payload, Session, Software

from ...language.source import Path
from ..accounting import to_send, told
from ..checking import Checks, Here, joined
from ..kind import Planned
from ..scene import Placed, Scene
from ..sending import check_sending, make_flow
from .file import Command, CommandFlow, GuaranteeOptions

PAYLOAD = "own"  # the program itself makes the payload; the agent generates nothing


def check_flow(report: Checks, here: Here, wanted: CommandFlow, path: Path) -> None:
    """Reports mistakes in one flow of a program: in its rate and times, a request without a reply or the
    reverse, a size of 0, and wrong receivers (unknown, not receiving, ambiguous, unreachable, or the program
    itself).
    """
    check_sending(report, here, wanted, path, "leave it out where nothing is sent")
    if wanted.pattern == "request" and wanted.reply is None:
        report.add(path, None, "has a request without a reply", "write `reply: SIZE`, or `pattern: push`")
    if wanted.pattern != "request" and wanted.reply is not None:
        rule = "has a reply without a request"
        report.add((*path, "reply"), None, rule, "write `pattern: request`, or leave it out")
    for key in ("size", "reply"):
        if getattr(wanted, key) == 0:
            report.add((*path, key), "0 B", "is nothing at all", 'write for example "100 B"')
    for index, target in enumerate(wanted.to):
        _target(report, here, target, (*path, "to", index) if len(wanted.to) > 1 else (*path, "to"))


def _target(report: Checks, here: Here, target: str, path: Path) -> None:
    name, _, software = target.partition("/")
    for node in report.machines(path, name):
        programs = report.programs(node)
        found = [s for s, one in programs.items() if isinstance(one, Command) and one.receives]
        if software and software not in programs:
            report.add(path, target, f"no software of {node} is called {software}", "name one that is there")
        elif not found or (software and software not in found):
            rule = f"no command there receives, on node {node}"
            report.add(path, target, rule, "write `receives: true` at the command that takes these messages")
        elif not software and len(found) > 1:
            report.add(path, target, f"more than one command of {node} receives", f"write {node}/{found[0]}")
        elif node in here.nodes and here.name == (software or found[0]):
            report.add(path, target, "a flow to itself", "name other software than the sender's")
        elif joined(report, here, path, target, node):
            continue
        return


def accounting(scene: Scene, placed: Placed, software: Software) -> Planned:
    """Returns the software with its session, its flows and, in `spec`, the settings of those flows. The
    session begins with the ramp, or with the hold if the command does.
    """
    command: Command = placed.model
    placed = dataclasses.replace(placed, connect_ns=_start_ns(scene, command))
    flows: list[Flow] = []
    receivers: dict[str, tuple[str, ...]] = {}
    sends: list[dict[str, Any]] = []
    for name, wanted in command.flows.items():
        to = _receivers(scene, wanted)
        set_name = f"{', '.join(wanted.to)} by {placed.kind}"
        flow = _flow(scene, placed, name, wanted, Delivery(set_name, _guarantee(wanted.guarantee)), to)
        flows.append(flow)
        receivers[set_name] = tuple(one.endpoint for one in to)
        sends.append(to_send(scene, placed, flow, to))
    session = Session(placed.endpoint, placed.connect_ns, scene.end_ns, listens=not flows)
    spec = {**software.spec, "accounts": told(placed, sends)}
    return Planned(dataclasses.replace(software, session=session, spec=spec), tuple(flows), receivers)


def _start_ns(scene: Scene, command: Command) -> int:
    return scene.ramp_ns if command.start == "hold" else 0


def _receivers(scene: Scene, wanted: CommandFlow) -> list[Placed]:
    found: dict[str, Placed] = {}
    for target in wanted.to:
        name, _, software = target.partition("/")
        for node in scene.machines(name):
            for other in scene.placed[node]:
                takes = isinstance(other.model, Command) and other.model.receives
                if takes and software in ("", other.name):
                    found[other.endpoint] = other
    return list(found.values())


def _flow(
    scene: Scene, placed: Placed, name: str, wanted: CommandFlow, delivery: Delivery, to: list[Placed]
) -> Flow:
    return make_flow(
        scene,
        placed,
        wanted,
        Payload(PAYLOAD, wanted.size),
        pattern=wanted.pattern,
        deliveries=(delivery,),
        heard_ns=max(_start_ns(scene, one.model) for one in to),
        name=name if len(placed.model.flows) > 1 else "",
        reply=Payload(PAYLOAD, wanted.reply) if wanted.reply is not None else None,
    )


def _guarantee(wanted: GuaranteeOptions) -> Guarantee:
    owed = {
        "lost": wanted.lossless,
        "delivered twice": wanted.single,
        "overtaken by another": wanted.ordered,
    }
    words = " or ".join(what for what, guaranteed in owed.items() if guaranteed)
    rule = f"{wanted.name}: no message is {words}" if words else f"{wanted.name}: nothing is guaranteed"
    return Guarantee(wanted.name, rule, wanted.lossless, wanted.single, wanted.ordered)
