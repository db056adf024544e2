"""Copies to another machine what a lab needs there: vNET's code with the agent, and images.

Each is a directory in the account's cache, named after its content, that is either complete or absent. So
nothing is copied twice, and different versions of vNET do not mix.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from contract import seal
from contract.plan import Plan
from orchestrator.images import Image, ImageError, locate
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.remote.account import Account
from orchestrator.kernel.remote.ssh import Connection
from orchestrator.project import CODE_ROOT, PROJECT

CODE = ("orchestrator", "capture", "contract")
# directories whose files are part of the names of images and kernels
RECIPES = ("images/guest", "images/kernel")
AGENT = "target/release/vnet-agent"
# The position of the offset of the backing file's name in a qcow2 header. The offset is 0 without a backing
# file.
BACKING_FILE = slice(8, 16)


@dataclass(frozen=True, slots=True)
class Upload:
    """A directory to copy: its path on the other machine, and its files by name; the last file marks the
    directory as complete.
    """

    target: str
    files: tuple[tuple[str, Path], ...]

    @property
    def size(self) -> int:
        """Total size of the files in bytes."""
        return sum(path.stat().st_size for _, path in self.files)


def code(account: Account, agent: Path) -> Upload:
    """Returns vNET's own code and the agent as one upload, laid out as in a checkout."""
    found = [(AGENT, agent), ("pyproject.toml", PROJECT / "pyproject.toml")]
    for root, tops in ((CODE_ROOT, CODE), (PROJECT, RECIPES)):
        for top in tops:
            files = (path for path in sorted((root / top).rglob("*")) if path.is_file())
            found += [(str(p.relative_to(root)), p) for p in files if p.suffix != ".pyc"]
    return Upload(f"{account.cache}/far/{_digest(found)}", tuple(found))


def images(account: Account, plan: Plan) -> list[Upload]:
    """Returns an upload for each image of the plan's machines; raises KernelError, with the remedy, for one
    that is not here.
    """
    found = []
    for name in image_names(plan):
        try:
            found.append(_image(account, name, locate(name)))
        except (ImageError, OSError) as error:
            raise KernelError(str(error)) from error
    return found


def image_names(plan: Plan) -> list[str]:
    """Returns the names (or paths) of the images of the plan's machines, each once."""
    return list(dict.fromkeys(node.vm.image for node in plan.nodes if node.vm is not None))


def with_images_there(account: Account, plan: Plan) -> Plan:
    """Returns the plan with the paths that the user's disks have on the other machine."""
    paths = {name: _disk(account, Path(name)).target for name in image_names(plan) if _own(name)}
    nodes = tuple(
        replace(node, vm=replace(node.vm, image=f"{paths[node.vm.image]}/disk.qcow2"))
        if node.vm is not None and node.vm.image in paths
        else node
        for node in plan.nodes
    )
    return replace(plan, nodes=nodes)


def carry(connection: Connection, account: Account, upload: Upload) -> bool:
    """Copies an upload unless it is there already; returns whether it copied. Raises KernelError with the
    other machine's error.
    """
    target, last = shlex.quote(upload.target), shlex.quote(f"{upload.target}/{upload.files[-1][0]}")
    there = connection.run(account.shell(f"test -e {last} && echo there; true"), what=upload.target)
    if there.split() == [b"there"]:
        return False
    part = shlex.quote(f"{upload.target}.part-") + "$$"
    script = (
        f"umask 022; mkdir -p {part} && tar -xf - -C {part} && mv -T {part} {target} "
        # The command also succeeds if another process has copied the file meanwhile.
        f"|| {{ rm -rf {part}; test -e {last}; }}"
    )
    write = functools.partial(_pack, upload)
    connection.run(account.shell(script), write, timeout_s=None, what=f"unpacking {upload.target}")
    return True


def _pack(upload: Upload, out: IO[bytes]) -> None:
    with tarfile.open(fileobj=out, mode="w|") as tar:
        for name, path in upload.files:
            tar.add(path, name, recursive=False, filter=_nobodys)


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member


def _digest(files: Iterable[tuple[str, Path]]) -> str:
    whole = hashlib.sha256()
    for name, path in files:
        whole.update(f"{name} {os.access(path, os.X_OK)} {digest(path, path.stat().st_mtime_ns)}\n".encode())
    return whole.hexdigest()[:16]


@functools.cache
def digest(path: Path, _changed_ns: int) -> str:
    """Returns the SHA-256 of a file in hexadecimal, and caches it for this path and modification time
    (`_changed_ns`).
    """
    return seal.digest(path)


def _own(image: str) -> bool:
    return image.startswith("/")


def _image(account: Account, name: str, image: Image) -> Upload:
    """Returns the upload of a built image, without the agent and the files that labs here derived from the
    image; the other machine makes its own.
    """
    if _own(name):
        return _disk(account, Path(name))
    files = sorted(path for path in image.directory.iterdir() if path.is_file())
    kept = [p for p in files if p.name != "image.json" and not p.name.startswith(("initrd-", "."))]
    named = [(path.name, path) for path in [*kept, image.directory / "image.json"]]
    return Upload(f"{account.cache}/images/{image.directory.name}", tuple(named))


def _disk(account: Account, path: Path) -> Upload:
    """Returns the upload of a user's disk; raises KernelError if it is a layer over another file."""
    with path.open("rb") as disk:
        if any(disk.read(16)[BACKING_FILE]):
            raise KernelError(
                f"image {path}: is a layer over another file, which is not carried along; make it whole: "
                f"qemu-img convert -O qcow2 {shlex.quote(str(path))} whole.qcow2"
            )
    content = digest(path, path.stat().st_mtime_ns)[:16]
    return Upload(f"{account.cache}/disks/{content}", (("disk.qcow2", path),))
