"""Makes a VM node's own files: its linked clone of a disk and its NoCloud seed.

Nodes with a built-in image need neither: all share one initrd, and their own data come by the kernel command
line and from their agent.
"""

from __future__ import annotations

import subprocess

from orchestrator import images
from orchestrator.lab.errors import LabError
from orchestrator.lab.vm.domain import Disk
from orchestrator.lab.vm.guest import Guest


def disks(lab: str, guest: Guest) -> tuple[Disk, ...]:
    """Returns the node's clone of the image's disk, made at its first start, and its seed, written each time;
    empty for an image without a disk. Raises LabError if qemu-img fails.
    """
    base = guest.image.disk
    if base is None:
        return ()
    clone, seed = guest.storage / "disk.qcow2", guest.storage / "seed.img"
    if not clone.exists():
        _run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(base), str(clone)])
    vm = guest.node.vm
    images.write_seed(
        seed, guest.image, lab=lab, node=guest.name, hostname=guest.node.hostname,
        user_data=vm.cloud_init if vm else {},
    )  # fmt: skip
    return Disk(str(clone), "vda", "qcow2"), Disk(str(seed), "vdb", "raw", readonly=True)


def _run(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(
            f"{' '.join(argv[:2])}: {done.stderr.strip()}; apt-get install qemu-utils, or free disk space"
        )
