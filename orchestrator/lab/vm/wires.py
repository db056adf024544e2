"""Finds devices of machines in the core namespace: those whose carrier a step changes, and those of ended
machines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from contract.plan import Link, Step
from orchestrator.lab.vm.guest import Guest


def moved(text: str) -> Iterator[tuple[str, bool]]:
    """Yields (port, up) for each port that a step of `ip` sets up or down; the machine's carrier must
    follow.
    """
    for line in text.splitlines():
        match line.split():
            case ["link", "set", "dev", port, "up" | "down" as word]:
                yield port, word == "up"


def unplugged(
    core: str, machines: Sequence[Guest], links: Iterable[Link], there: Collection[str]
) -> Step | None:
    """Returns the step that deletes the devices of ended machines (taps, bridges, wires); None if none
    remain.
    """
    cards = [i for g in machines for i in g.node.interfaces]
    devices = [d for i in cards for d in (i.port, i.bridge) if d in there]
    names = {g.name for g in machines}
    devices += [li.forward.device for li in links if li.kind == "access" and li.a in names]
    text = "".join(f"link del dev {device}\n" for device in dict.fromkeys(devices) if device in there)
    return Step("ip", core, text, "wires of removed machines") if text else None
