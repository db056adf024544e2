"""Stores leases: the lab that has a NIC, and the NIC's former state, so that any process can restore it.

Each NIC has one file, STATE_ROOT/.leases/KEY.json, which only one lab can create. (A lab's name has no dot,
so no lab's own directory has this name.)
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from orchestrator.nics.model import NicError

DIRECTORY = ".leases"


@dataclass(frozen=True, slots=True)
class Found:
    """The state of an interface before the lab took it."""

    name: str
    index: int
    mac: str
    mtu: int
    up: bool
    addresses: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()  # in the words of `ip route add`
    offloads: dict[str, bool] = field(default_factory=dict)  # tso, gso, gro
    gso_max_segs: int | None = None  # None: `ip` did not print the value, so it is not restored


@dataclass(frozen=True, slots=True)
class Lease:
    """A lab's claim on one NIC. `netns` and `name`: the place of the interface in the lab; "" if its PCI
    function is passed to a VM. pci, driver, found: the NIC's former state; None for parts that it does not
    have.
    """

    key: str
    lab: str
    place: str  # path of the key in the topology, such as nodes.broker.eth0
    kind: Literal["namespace", "vm"]
    netns: str
    name: str
    pid: int  # number of the lab process that took the NIC
    start_ticks: int
    pci: str | None = None
    driver: str | None = None
    found: Found | None = None


def take(root: Path, lease: Lease) -> None:
    """Writes the lease; raises NicError if there is already one for this NIC."""
    path = path_of(root, lease.key)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(lease), indent=1)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text)
    try:
        os.link(part, path)  # creates the file as a whole, and only if no other lab has it
    except FileExistsError:
        other = read(path)
        lab = other.lab if other else "another lab"
        raise NicError(
            f"{lease.place}: {lease.key}: leased by lab {lab}; end it with `vnet down {lab}`"
        ) from None
    finally:
        part.unlink()


def drop(root: Path, key: str) -> None:
    """Removes a lease, if it exists, and the directory if it is then empty."""
    path_of(root, key).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # the directory holds other leases, or was never made
        path_of(root, key).parent.rmdir()


def every(root: Path) -> list[Lease]:
    """Returns all leases, ordered by file name; raises NicError if a file is not a lease."""
    directory = root / DIRECTORY
    files = sorted(directory.glob("*.json")) if directory.is_dir() else []
    return [lease for file in files if (lease := read(file)) is not None]


def of_lab(root: Path, lab: str) -> list[Lease]:
    return [lease for lease in every(root) if lease.lab == lab]


def read(path: Path) -> Lease | None:
    """Returns the lease in a file; None if the file does not exist. Raises NicError if the file is not a
    lease.
    """
    try:
        data: dict[str, Any] = json.loads(path.read_text())
        found = data.pop("found")
        return Lease(**data, found=_found(found) if found else None)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise NicError(
            f"{path}: not a lease ({error}); see where the NIC is with `vnet doctor`, then remove it"
        ) from error


def _found(data: dict[str, Any]) -> Found:
    return Found(**{**data, "addresses": tuple(data["addresses"]), "routes": tuple(data["routes"])})


def path_of(root: Path, key: str) -> Path:
    return root / DIRECTORY / f"{key}.json"
