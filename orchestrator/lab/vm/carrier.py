"""Connects or disconnects the wires of a running machine, which changes the guest's carrier."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree  # of libvirt's own text
from typing import Any

from contract.plan import Interface
from orchestrator.lab.errors import LabError
from orchestrator.lab.vm.connection import said
from orchestrator.lab.vm.guest import Guest


def set_carrier(libvirt: Any, guest: Guest, card: Interface, up: bool) -> None:
    """Sets the link state of the interface with the card's MAC; LabError with libvirt's
    text if that fails.
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
