"""Adds users' disks to the cache of images under a name: a cloud image from a file, or the disk of a machine
that a lab has prepared.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

from orchestrator.images import cache
from orchestrator.images.errors import ImageError
from orchestrator.images.find import look
from orchestrator.images.model import Image, read_image
from orchestrator.images.recipe import recipes
from orchestrator.images.run import require, run
from orchestrator.project import LAB_KERNELS

NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
DISK = "disk.qcow2"
CHUNK = 1 << 20


def add(file: Path, name: str) -> Image:
    """Copies a qcow2 cloud image into the cache under a name and returns it. Raises ImageError if the name is
    in use or invalid, or if the file is not a whole qcow2 disk.
    """
    insist_free(name)
    own = look(str(file.absolute()))
    assert own.disk is not None  # an image with a path always has a disk
    return _publish(name, replace(own, made={"file": file.name}), own.disk)


def save(disk: Path, name: str, of: str, base: Image) -> Image:
    """Makes an image from the disk of a machine that is switched off. The new disk is one file without a
    backing file. If `base`, the machine's image, starts its kernel directly, the new image has that kernel.
    `of`: the machine's name for the description.

    Raises ImageError if the name is invalid or taken, or the machine has no disk or still runs.
    """
    insist_free(name)
    if base.disk is None or not disk.is_file():
        raise ImageError(
            f"{of}: has no disk: built-in images live in memory; use `image: debian` or your own"
        )
    return _publish(name, replace(base, made={"saved from": of, "on": base.name}), disk, base.disk)


def insist_free(name: str) -> None:
    """Raises ImageError if the name is invalid, or if an image of vNET or in the cache already has it."""
    if not NAME.fullmatch(name):
        raise ImageError(f'image "{name}": is no name; write a-z, 0-9 and -, first a letter, at most 63')
    if name in recipes() or name in LAB_KERNELS:
        raise ImageError(f"image {name}: is one that vNET builds; choose another name")
    if cache.directories(name):
        raise ImageError(f"image {name}: is there already; `vnet images rm {name}`, or choose another name")


def _publish(name: str, like: Image, disk: Path, below: Path | None = None) -> Image:
    """Copies the kernel of `like` and the disk into the cache. `below`: the disk's backing file, which is
    merged into the copy; None if it has none.
    """
    require({"qemu-img": "qemu-utils"})
    root = cache.cache_dir()
    root.mkdir(parents=True, exist_ok=True)
    room = shutil.disk_usage(root).free
    needed = disk.stat().st_size + (0 if below is None else below.stat().st_size)
    if needed > room:
        text = f"takes up to {needed / 1e6:.0f} MB, {room / 1e6:.0f} MB are free at {root}"
        raise ImageError(f"image {name}: {text}; free some, or set XDG_CACHE_HOME")
    digest = hashlib.sha256(f"{name}\0{disk}\0{disk.stat().st_mtime_ns}\0{needed}".encode()).hexdigest()[:16]
    with cache.publish(name, digest) as directory:
        target = directory / DISK
        if below is None:
            run(["cp", "--reflink=auto", "--sparse=auto", "--", disk, target], why=f"image {name}")
        else:
            over = _over(disk, below)
            convert: list[str | Path] = ["qemu-img", "convert", "-q", "-c", "-O", "qcow2", over, target]
            run(convert, why=f"image {name}: the machine's disk (is it switched off?)")
        kernel, initrd = (
            _copied(like.kernel, directory / "kernel"),
            _copied(like.initrd, directory / "initrd"),
        )
        made = {**like.made, "sha256": _sha256(target)}
        image = replace(like, name=name, directory=directory, disk=target, made=made)
        cache.write_description(replace(image, kernel=kernel, initrd=initrd))
    return read_image(root / f"{name}-{digest}")


def _over(disk: Path, below: Path) -> str:
    """Returns the argument by which qemu-img opens a disk with its backing file `below`. The disk itself
    names this file by a path that exists only in its lab.
    """
    files = [{"driver": "file", "filename": str(path.absolute())} for path in (disk, below)]
    return "json:" + json.dumps(
        {"driver": "qcow2", "file": files[0], "backing": {"driver": "qcow2", "file": files[1]}}
    )


def _copied(file: Path | None, target: Path) -> Path | None:
    return None if file is None else Path(shutil.copyfile(file, target))


def _sha256(file: Path) -> str:
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()
