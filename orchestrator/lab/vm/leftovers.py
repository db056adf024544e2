"""Finds and removes the domains with vNET's metadata and the lent taps that a crashed lab left at a libvirt
daemon.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from orchestrator.lab.errors import LabError
from orchestrator.lab.vm import handover
from orchestrator.lab.vm.connection import EMBED, library, said
from orchestrator.lab.vm.domain import NAMESPACE

SYSTEM = "qemu:///system"
SYSTEM_SOCKET = Path("/run/libvirt/libvirt-sock")


def uri_of(state_dir: Path) -> str | None:
    """Returns the URI of the daemon that may still run machines of the lab, as a file in its state directory
    names it; None for the embedded driver. Without that file, returns this machine's system daemon if this
    user may connect to it, else None.
    """
    try:
        uri = (state_dir / "libvirt").read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return SYSTEM if os.access(SYSTEM_SOCKET, os.W_OK, effective_ids=True) else None
    return None if uri.startswith(EMBED) else uri


def remove(lab: str, state_dir: Path) -> list[str]:
    """Ends every domain of the lab and deletes its lent taps; returns their names. Raises LabError if a
    domain remains or libvirt refuses.
    """
    found = [f"tap {name}" for name in handover.remove(lab)]
    uri = uri_of(state_dir)
    if uri is None:
        return found
    libvirt = library()
    try:
        for domain in _domains(libvirt, uri, lab, state_dir):
            found.append(f"domain {domain.name()}")
            with contextlib.suppress(libvirt.libvirtError):  # the domain's process has just been killed
                domain.destroy()
        if left := _domains(libvirt, uri, lab, state_dir):
            raise LabError(f"libvirt {uri}: {left[0].name()} does not end")
    except libvirt.libvirtError as error:
        raise LabError(f"libvirt {uri}: {said(error)}") from error
    return found


def listed(lab: str, state_dir: Path) -> list[str]:
    """Returns the names of the lab's lent taps and domains, which `remove` would delete; without domains if
    no daemon answers.
    """
    found = [f"tap {entry['ifname']}" for entry in handover.marked(lab)]
    if (uri := uri_of(state_dir)) is None:
        return found
    libvirt = library()
    with contextlib.suppress(libvirt.libvirtError):
        found += [f"domain {d.name()}" for d in _domains(libvirt, uri, lab, state_dir)]
    return found


def _domains(libvirt: Any, uri: str, lab: str, state_dir: Path) -> list[Any]:
    """Returns the domains whose metadata names this lab and this state directory."""
    return [d for d in libvirt.open(uri).listAllDomains() if _ours(libvirt, d, lab, state_dir)]


def _ours(libvirt: Any, domain: Any, lab: str, state_dir: Path) -> bool:
    """Returns whether the domain's metadata names this lab and state directory; False if it has none."""
    import xml.etree.ElementTree as ElementTree

    with contextlib.suppress(libvirt.libvirtError, ElementTree.ParseError):
        text = domain.metadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, NAMESPACE)
        marks = ElementTree.fromstring(text).attrib
        return marks.get("lab") == lab and marks.get("state") == str(state_dir)
    return False
