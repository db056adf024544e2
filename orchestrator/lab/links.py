"""Links of a running lab: impairments changed and read back, wires taken down and put up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from orchestrator.lab import readback
from orchestrator.lab.impair import change_text, merged
from orchestrator.lab.lab import Lab, direction_of
from orchestrator.model import Impairment, Node, Step
from orchestrator.model.codec import build


def impair(lab: Lab, name: str, direction: str, wanted: Impairment) -> None:
    """Replace one direction's impairment; LabError where the kernel reads back otherwise."""
    at = direction_of(lab.link(name), direction)
    before = lab.impairments[name, direction]
    if text := change_text(at.device, before, wanted):
        lab.driver.apply(Step("tc", at.netns, text, f"link {name} {direction}"))
        lab.impairments[name, direction] = wanted
    place = f"links.{name}.{direction}"
    readback.insist(readback.impairment(place, wanted, lab.driver.qdiscs(at.netns), at.device))


def impair_from(lab: Lab, name: str, sides: dict[str, Any]) -> None:
    """As a timeline event has it: whole impairments, or None for a direction that stays as it is."""
    for direction in ("forward", "reverse"):
        if sides.get(direction) is not None:
            impair(lab, name, direction, build(Impairment, sides[direction]))


def change(lab: Lab, name: str, direction: str, changes: dict[str, Any]) -> Impairment:
    """Merge single fields into what is set now."""
    wanted = merged(lab.impairments[name, direction], changes, f"links.{name}.{direction}")
    impair(lab, name, direction, wanted)
    return wanted


def set_up(lab: Lab, names: Iterable[str], up: bool) -> None:
    """Take links down or put them up, all of them in one batch, and read the state back."""
    names = list(names)
    devices = {name: wire_end(lab, name) for name in names}
    set_devices(lab, [device for _, device in devices.values()], up)
    (lab.down.difference_update if up else lab.down.update)(names)


def set_devices(lab: Lab, devices: Iterable[str], up: bool) -> None:
    """Set devices of the core namespace up or down."""
    word = "up" if up else "down"
    text = "".join(f"link set dev {device} {word}\n" for device in devices)
    core = lab.plan.core_netns
    if not text:
        return
    lab.driver.apply(Step("ip", core, text, f"links {word}"))
    flags = {e["ifname"]: e.get("flags", ()) for e in lab.driver.devices(core)}
    wrong = [
        readback.Difference(f"{core}.{d}", word, "up" if "UP" in flags.get(d, ()) else "down or absent")
        for d in devices if ("UP" in flags.get(d, ())) != up
    ]  # fmt: skip
    readback.insist(wrong)


def wire_end(lab: Lab, name: str) -> tuple[str, str]:
    """(namespace, device) of the end in the core: the one that goes down when the link does."""
    link = lab.link(name)
    side = link.reverse if link.kind == "access" else link.forward
    if side.enter is not None:  # the qdisc is inside a bridge VM; its tap is the end in the core
        return lab.plan.core_netns, side.enter
    return side.netns, side.device


def ports(node: Node) -> list[str]:
    """Ends in the core namespace; a NIC without a cable back into the lab has none."""
    return [interface.port for interface in node.interfaces if interface.port]
