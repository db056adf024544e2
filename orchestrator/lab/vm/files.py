"""Makes a VM node's own files: its linked clone of a disk and its NoCloud seed.

Nodes with a built-in image need neither: all share one initrd, and their own data come by the kernel command
line and from their agent.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from orchestrator import images
from orchestrator.lab.errors import LabError
from orchestrator.lab.vm.domain import Disk
from orchestrator.lab.vm.guest import Guest

SECTOR = 512  # bytes; the size of a disk is a whole number of sectors


def disks(lab: str, guest: Guest) -> tuple[Disk, ...]:
    """Returns the node's clone of the image's disk, made at its first start, and its seed, written each time;
    empty for an image without a disk. Raises LabError if qemu-img fails.
    """
    base = guest.image.disk
    if base is None:
        return ()
    clone, seed = guest.storage / "disk.qcow2", guest.storage / "seed.img"
    vm = guest.node.vm
    if not clone.exists():
        make_clone(base, clone, vm.disk_bytes if vm else 0, f"nodes.{guest.name}")
    images.write_seed(
        seed, guest.image, lab=lab, node=guest.name, hostname=guest.node.hostname,
        user_data=vm.cloud_init if vm else {},
    )  # fmt: skip
    return Disk(str(clone), "vda", "qcow2"), Disk(str(seed), "vdb", "raw", readonly=True)


def make_clone(base: Path, clone: Path, size: int, place: str) -> None:
    """Makes a linked clone of a disk, of `size` bytes or, for 0, of the disk's own size. Raises LabError,
    which begins with `place`, if the disk is larger than that, or if qemu-img fails.
    """
    least = images.virtual_bytes(base)
    if size and size < least:
        raise LabError(f"{place}: disk: {size} B is less than the image's {least} B; write at least that")
    sized = [str(size + -size % SECTOR)] if size else []
    _run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(base), str(clone), *sized])


def _run(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(
            f"{' '.join(argv[:2])}: {done.stderr.strip()}; apt-get install qemu-utils, or free disk space"
        )
