"""Reports on VM nodes: the programs that run them, and the images that they start from."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from orchestrator.doctor.finding import Finding
from orchestrator.images import builders, cache
from orchestrator.kernel.facts import find_tool
from orchestrator.kernel.virtual_machines import EMBEDDED, TUN
from orchestrator.lab.vm import account
from orchestrator.project import BINDINGS as BIND
from orchestrator.project import PACKAGES

PROGRAMS = ("qemu-system-x86_64", "qemu-img")
BINDINGS = ("libvirt", "jinja2")
INSTALL = f"{PACKAGES} vm"
REFUSED = "labs with nodes of kind vm are refused"


def findings() -> list[Finding]:
    """Returns findings on virtual machines. If requirements are missing, one finding names them; if not,
    there are two: on the programs, and on the images that are built and up to date.
    """
    lacking = list(absent())
    if lacking:
        return [programs(lacking)]
    return [programs(()), images([image.name for image in cache.images() if builders.current(image)])]


def absent(embedded: Sequence[str] = EMBEDDED, tun: Path = TUN) -> Iterator[tuple[str, str]]:
    """Yields (what, remedy) for each requirement of virtual machines that this machine lacks."""
    if os.geteuid() != 0:
        yield "rights of root", "run vnet as root"
    yield from ((name, INSTALL) for name in PROGRAMS if find_tool(name) is None)
    if not any(Path(driver).exists() for driver in embedded):
        yield "libvirt's QEMU driver", INSTALL
    if account.known() is None:
        yield f"the account {account.NAMES[0]}", INSTALL
    yield from ((f"Python's {name}", BIND) for name in BINDINGS if not importlib.util.find_spec(name))
    if not tun.exists():
        yield str(tun), "modprobe tun"


def programs(lacking: Sequence[tuple[str, str]]) -> Finding:
    """Returns the finding on the requirements of virtual machines. `lacking`: (what, remedy) for each that is
    missing, as `absent` yields them.
    """
    if not lacking:
        return Finding(
            "virtual machines",
            "ok",
            "libvirt's QEMU driver, qemu-system-x86_64 in an account of its own, tap devices",
        )
    names = ", ".join(what for what, _ in lacking)
    remedies = "; ".join(dict.fromkeys(remedy for _, remedy in lacking))
    return Finding("virtual machines", "limited", f"not here: {names}", REFUSED, remedies)


def images(built: Sequence[str]) -> Finding:
    """Returns the finding on built images of virtual machines; `built`: the names of those that are up to
    date with their inputs. Without any it is `limited`.
    """
    if built:
        return Finding("vm images", "ok", ", ".join(dict.fromkeys(built)))
    return Finding("vm images", "limited", "none is built", REFUSED, "vnet images build builtin")
