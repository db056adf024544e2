"""Describes the libvirt domain of a VM node: its values in a frozen dataclass, its XML from a template."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from orchestrator.lab.limits import Quota

NAMESPACE = "urn:vnet:node:1"  # namespace of vNET's metadata in a domain, by which teardown finds it
EMULATOR = "/usr/bin/qemu-system-x86_64"
# Size in MiB of the translated code that QEMU keeps. Without a limit it grows to the size of the guest's
# memory; 16 MiB are enough for a kernel, an agent and a broker.
TB_CACHE_MIB = 16
# Firmware that boots a kernel in some milliseconds; SeaBIOS first looks at every device (0.3 s under TCG).
QBOOT = Path("/usr/share/qemu/qboot.rom")


@dataclass(frozen=True, slots=True)
class Card:
    mac: str
    port: str
    up: bool = True


@dataclass(frozen=True, slots=True)
class Disk:
    path: str
    target: str  # vda, vdb
    format: str
    readonly: bool = False


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of the domain's template; paths are those that QEMU's account can read."""

    name: str
    lab: str
    node: str
    state: str  # the lab's state directory
    directory: str  # the node's own directory in the state directory, with its sockets
    console_log: str
    kvm: bool
    memory_bytes: int
    vcpus: int
    kernel: str | None
    initrd: str | None
    append: str
    owner: str  # QEMU's account: +UID:+GID
    cards: tuple[Card, ...]
    disks: tuple[Disk, ...] = ()
    hostdevs: tuple[str, ...] = ()  # PCI addresses, 0000:01:00.0
    quota: Quota | None = None
    shares: int | None = None
    partition: str | None = None
    firmware: str | None = None
    emulator: str = EMULATOR
    tb_cache_mib: int = TB_CACHE_MIB

    @property
    def uuid(self) -> str:
        """The domain's UUID, equal for the same node of the same lab and state directory, so that libvirt
        refuses a second one.
        """
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{NAMESPACE}/{self.state}/{self.lab}/{self.node}"))


@cache
def _template() -> Any:
    import jinja2

    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.get_template("domain.xml.j2")


def render(domain: Domain) -> str:
    """Returns the domain's XML from the template domain.xml.j2; equal values give equal text."""
    return str(_template().render(d=domain, namespace=NAMESPACE)) + "\n"
