"""Software and nodes started, stopped, killed and started again, with the state that the end
of a run asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from orchestrator.lab.clock import SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.lab import Lab
from orchestrator.lab.links import ports, set_devices
from orchestrator.plan.codec import to_json
from orchestrator.plan.model import Software

STOP_NS = 10 * SECOND
MARGIN_NS = 30 * SECOND
Item = tuple[str, Software]


def start(lab: Lab, items: Sequence[Item]) -> dict[Item, str]:
    """Start programs side by side and wait until each is ready or has failed; {item: error} of
    those that failed.
    """
    answers: dict[int, Message] = {}
    for number, (node, software) in enumerate(items):
        lab.meant.discard((node, software.name))
        lab.driver.submit(
            "start", lambda answer, n=number: answers.__setitem__(n, answer),  # type: ignore[misc]
            node=node, software=plain(software), log=str(log_file(lab, node, software)),
        )  # fmt: skip
        lab.started[node, software.name] = software
    longest = max((s.process.ready.deadline_ns for _, s in items if s.process), default=0)
    deadline = lab.loop.clock.now_ns() + longest + MARGIN_NS
    lab.loop.until(deadline, "software to become ready", lambda: len(answers) == len(items))
    return {
        items[n]: str(answer.get("error", "refused without a reason"))
        for n, answer in sorted(answers.items()) if not answer.get("ok")
    }  # fmt: skip


def insist(failed: dict[Item, str]) -> None:
    """LabError with every program that did not start."""
    if failed:
        raise LabError("; ".join(f"nodes.{node}.{s.name}: {error}" for (node, s), error in failed.items()))


def stop(lab: Lab, items: Iterable[Item], signal: str | None = None) -> None:
    """End programs (their own stop signal unless `signal`); an exit that follows is expected."""
    for node, software in items:
        process = software.process
        if process is None:
            raise LabError(
                f"nodes.{node}.{software.name}: an MQTT client lives in the node's agent and cannot be "
                "stopped alone; take its link down instead"
            )
        lab.meant.add((node, software.name))
        lab.driver.call(
            "stop",
            node=node,
            software=software.name,
            signal=signal or process.stop_signal,
            timeout_ns=STOP_NS,
        )


def chosen(lab: Lab, nodes: Iterable[str], name: str | None) -> list[Item]:
    """The programs that an action on `nodes` means: one by name, or all of each node."""
    if name is None:
        return lab.processes(nodes)
    return [(node, lab.software(node, name)) for node in nodes]


def act(lab: Lab, action: str, nodes: Sequence[str], name: str | None) -> None:
    """start, stop, kill or restart: software by name, or whole nodes with their links."""
    if action in ("stop", "kill", "restart"):
        end(lab, nodes, name, kill=action == "kill")
    if action in ("start", "restart"):
        begin(lab, nodes, name)


def end(lab: Lab, nodes: Sequence[str], name: str | None, kill: bool = False) -> None:
    states = lab.driver.call("software")["nodes"]
    running = [
        (node, s) for node, s in chosen(lab, nodes, name)
        if s.process is None or states.get(node, {}).get(s.name, {}).get("state") in ("starting", "ready")
    ]  # fmt: skip
    stop(lab, running, "SIGKILL" if kill else None)
    if name is None:
        set_devices(lab, [p for n in nodes for p in ports(lab.node(n))], up=False)
        for node in nodes:
            lab.node_states[node] = "stopped"


def begin(lab: Lab, nodes: Sequence[str], name: str | None) -> None:
    if name is None:
        set_devices(lab, [p for n in nodes for p in ports(lab.node(n))], up=True)
        for node in nodes:
            lab.node_states[node] = "running"
    insist(start(lab, chosen(lab, nodes, name)))


def plain(software: Software) -> dict[str, Any]:
    """A Software as the launcher reads it."""
    data: dict[str, Any] = json.loads(to_json(software))
    return data


def log_file(lab: Lab, node: str, software: Software) -> Path:
    return lab.run_dir / "raw" / "logs" / f"{node}.{software.name}.log"
