"""Finds devices of machines in the core namespace: those whose carrier a step changes, and those of ended
machines. Sets the carrier of a running machine's interface.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree  # parses only text that libvirt itself wrote
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from contract.plan import Interface, Link, Step
from orchestrator.lab.errors import LabError
from orchestrator.lab.vm.connection import said
from orchestrator.lab.vm.guest import Guest


def moved(text: str) -> Iterator[tuple[str, bool]]:
    """Yields (port, up) for each line `link set dev PORT up|down` in a step of `ip`; the machine's carrier
    must follow.
    """
    for line in text.splitlines():
        match line.split():
            case ["link", "set", "dev", port, "up" | "down" as word]:
                yield port, word == "up"


def unplugged(
    core: str, machines: Sequence[Guest], links: Iterable[Link], there: Collection[str]
) -> Step | None:
    """Returns the step that deletes the devices of ended machines (taps, bridges, wires) that are in `there`;
    None if there are none.
    """
    cards = [i for g in machines for i in g.node.interfaces]
    devices = [d for i in cards for d in (i.port, i.bridge) if d in there]
    names = {g.name for g in machines}
    devices += [li.forward.device for li in links if li.kind == "access" and li.a in names]
    text = "".join(f"link del dev {device}\n" for device in dict.fromkeys(devices) if device in there)
    return Step("ip", core, text, "wires of removed machines") if text else None


def set_carrier(libvirt: Any, guest: Guest, card: Interface, up: bool) -> None:
    """Sets the link state of the interface with the card's MAC in a running domain; does nothing if there is
    none. Raises LabError with libvirt's text if that fails.
    """
    try:
        domain = ElementTree.fromstring(guest.domain.XMLDesc(0))
        for entry in domain.iterfind("devices/interface"):
            mac = entry.find("mac")
            if mac is None or mac.get("address", "").lower() != card.mac.lower():
                continue
            link = entry.find("link")
            link = ElementTree.SubElement(entry, "link") if link is None else link
            link.set("state", "up" if up else "down")
            live = libvirt.VIR_DOMAIN_AFFECT_LIVE
            guest.domain.updateDeviceFlags(ElementTree.tostring(entry, encoding="unicode"), live)
    except libvirt.libvirtError as error:
        raise LabError(f"nodes.{guest.name}: link {card.port}: libvirt refuses: {said(error)}") from error
