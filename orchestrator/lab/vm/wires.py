"""Devices in the core namespace of machines: finds those whose carrier a step changes, and those that
remain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from contract.plan import Link, Step
from orchestrator.lab.vm.guest import Guest


def moved(text: str) -> Iterator[tuple[str, bool]]:
    """Ports that a step of `ip` sets up (True) or down, and whose machine's carrier must follow."""
    for line in text.splitlines():
        match line.split():
            case ["link", "set", "dev", port, "up" | "down" as word]:
                yield port, word == "up"


def unplugged(
    core: str, machines: Sequence[Guest], links: Iterable[Link], there: Collection[str]
) -> Step | None:
    """The step that deletes devices of ended machines: taps, with their bridges and wires; None if there are
    none.
    """
    cards = [i for g in machines for i in g.node.interfaces]
    devices = [d for i in cards for d in (i.port, i.bridge) if d in there]
    names = {g.name for g in machines}
    devices += [li.forward.device for li in links if li.kind == "access" and li.a in names]
    text = "".join(f"link del dev {device}\n" for device in dict.fromkeys(devices) if device in there)
    return Step("ip", core, text, "wires of removed machines") if text else None
