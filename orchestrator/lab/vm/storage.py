"""Chooses, makes and removes the directory for machines' disks, seeds and snapshots, on a disk and not in the
state directory.

The state directory is a tmpfs by default (/run; on Debian 10 % of the memory), which a few snapshots fill.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from contract.plan import Node
from orchestrator.lab.errors import LabError

VARIABLE = "VNET_DISK_DIR"
DEFAULT = Path("/var/lib/vnet/disks")


def root() -> Path:
    """Returns the directory of all labs' machines: VNET_DISK_DIR, or /var/lib/vnet/disks if that is
    not set.
    """
    return Path(os.environ.get(VARIABLE) or DEFAULT)


def of_lab(state_dir: Path) -> Path:
    """Returns the directory of a lab's machines, the same in every run of that name and state directory."""
    mark = hashlib.sha256(os.fsencode(state_dir.parent)).hexdigest()[:8]
    return root() / f"{state_dir.name}-{mark}"


def make(state_dir: Path) -> Path:
    """Makes an empty directory for a lab's machines, removes an earlier one of that name, and writes its path
    to the state directory; raises LabError if it cannot be made.
    """
    place = of_lab(state_dir)
    try:
        if place.is_dir():
            # a lab of this name that was killed with its host left the directory; no other lab uses the name
            # now
            shutil.rmtree(place)
        for directory in (*reversed([p for p in place.parents if not p.exists()]), place):
            directory.mkdir()
            directory.chmod(0o711)  # lets QEMU's account enter the directory
    except OSError as error:
        raise LabError(
            f"{place}: disks of virtual machines cannot be kept there: {error.strerror}; set {VARIABLE} to a "
            "directory on a disk"
        ) from error
    (state_dir / "disks").write_text(f"{place}\n")
    return place


def remove(state_dir: Path) -> list[str]:
    """Removes the directory of a lab's machines, also after a crash; returns [path], or [] if it was absent
    or has another name than this lab's.
    """
    place = kept(state_dir)
    if place.name != of_lab(state_dir).name or not place.is_dir():
        return []
    shutil.rmtree(place)
    if place.parent == DEFAULT:  # a directory that the user chose is not removed
        with contextlib.suppress(OSError):  # the parent may have another lab's directory
            DEFAULT.rmdir()
            DEFAULT.parent.rmdir()
    return [str(place)]


def kept(state_dir: Path) -> Path:
    """Returns the directory of the lab's machines that a file in its state directory names; without that
    file, the directory that a lab would use now.
    """
    try:
        return Path((state_dir / "disks").read_text().strip())
    except (FileNotFoundError, NotADirectoryError):
        return of_lab(state_dir)


def existing(place: Path) -> Path:
    """Returns the place, or the nearest directory above it that exists."""
    return next(p for p in (place, *place.parents) if p.is_dir())


def insist(nodes: Sequence[Node], place: Path) -> None:
    """Raises LabError if the usual size of these machines' disks does not fit at `place`."""
    # a module of the planner, which `vnet doctor` does not load
    from orchestrator.plan.capacity import DISK_BYTES

    free, needed = shutil.disk_usage(existing(place)).free, len(nodes) * DISK_BYTES
    if needed > free:
        raise LabError(
            f"nodes.{nodes[0].name}: disks of {len(nodes)} virtual machine(s) take about "
            f"{needed / 1e6:.0f} MB at {place}, {free / 1e6:.0f} MB are free; free disk space, or set "
            f"{VARIABLE} to a directory with room"
        )


def resident_bytes(pid: int) -> int | None:
    """Returns the memory (bytes) that a process holds now; None if it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None
    return pages * os.sysconf("SC_PAGESIZE")
