"""Finds an image by name for VM nodes; errors state the command that builds a missing one."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import time
from dataclasses import replace
from pathlib import Path

from orchestrator.images import cache, initramfs
from orchestrator.images.errors import ImageError
from orchestrator.images.inputs import input_hash
from orchestrator.images.model import Image, read_image
from orchestrator.images.recipe import recipes
from orchestrator.project import AGENT, BUILD_AGENT

STALE_S = 3600.0
QCOW2 = b"QFI\xfb"
# magic, position of the backing file's name, its length (docs/interop/qcow2.rst of QEMU)
HEADER = struct.Struct(">4s4xQI")
VIRTUAL_SIZE_AT = 24  # position in the header; big-endian, 8 bytes
OWN_DISK_MEMORY = 512 << 20


def locate(name: str, agent: Path | None = None) -> Image:
    """Returns the built image of that name; if `name` is a path, the user's own disk. The initrd of an image
    without a disk gets the agent at `agent`, or the one that `agent_binary` finds.

    Raises ImageError with the remedy if the image or the agent is missing, outdated or not usable.
    """
    image = look(name)
    if image.kind == "disk" or image.initrd is None:
        return image
    return replace(image, initrd=_with_agent(image.initrd, agent or agent_binary()))


def look(name: str) -> Image:
    """Returns the image of that name or path as it was built, without the present agent. Raises ImageError if
    it is not built, is outdated, or is not a usable disk.
    """
    if "/" in name or name.endswith((".qcow2", ".img")):
        return _own_disk(Path(name))
    found = cache.directories(name)
    if not found:
        known = ", ".join(recipes())
        remedy = (
            f"vnet images build {name}"
            if name in recipes()
            else f"write one of {known}, or a path to a qcow2 file"
        )
        raise ImageError(f"image {name}: not built; {remedy}")
    return _present(name, found)


def _present(name: str, found: list[Path]) -> Image:
    """Returns the built image that matches its present inputs; for an image that vNET does not build, the
    newest. Raises ImageError if it is outdated.
    """
    recipe = recipes().get(name)
    if recipe is None:
        return read_image(found[0])
    wanted = found[0].with_name(f"{name}-{input_hash(recipe)}")
    if wanted not in found:
        raise ImageError(
            f"image {name}: its build inputs have changed since it was built; vnet images build {name}"
        )
    return read_image(wanted)


def _own_disk(path: Path) -> Image:
    """Returns an image for a user's qcow2 cloud image, which boots itself and has cloud-init.

    Raises ImageError if the file cannot be read, is not qcow2, or has a backing file.
    """
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
    except OSError as error:
        raise ImageError(f"image {path}: {error.strerror}; write a path to a qcow2 file") from None
    if magic != QCOW2:
        remedy = f"qemu-img convert -O qcow2 {path} {path.with_suffix('.qcow2')}"
        raise ImageError(f"image {path}: not qcow2; {remedy}")
    if backing := rests_on(path):
        remedy = f"qemu-img convert -O qcow2 {path} whole.qcow2, and name that"
        raise ImageError(
            f"image {path}: rests on another file, {backing}, which machines do not see; {remedy}"
        )
    return Image(
        name=path.stem,
        kind="disk",
        directory=path.parent,
        kernel=None,
        initrd=None,
        append="",
        disk=path,
        memory_bytes=OWN_DISK_MEMORY,
        agent="/opt/vnet/vnet-agent",
        guest_agent=False,
        made={},
    )


def rests_on(path: Path) -> str:
    """Returns the backing file of a qcow2 disk (docs/interop/qcow2.rst of QEMU); "" if it has none, or is not
    qcow2.
    """
    with path.open("rb") as stream:
        head = stream.read(HEADER.size)
        if len(head) < HEADER.size or not head.startswith(QCOW2):
            return ""
        _, place, length = HEADER.unpack(head)
        stream.seek(place)
        return stream.read(length).decode(errors="replace") if place else ""


def virtual_bytes(path: Path) -> int:
    """Returns the size in bytes of a qcow2 disk as its virtual machine sees it; the file is often smaller
    (docs/interop/qcow2.rst of QEMU).
    """
    with path.open("rb") as stream:
        stream.seek(VIRTUAL_SIZE_AT)
        return int.from_bytes(stream.read(8))


def agent_binary() -> Path:
    """Returns the path of the agent for guests: $VNET_AGENT, else the project's build, else the one on the
    PATH. Raises ImageError if it is missing or not executable.
    """
    given = os.environ.get("VNET_AGENT")
    found = given or (str(AGENT) if AGENT.exists() else shutil.which("vnet-agent"))
    if found is None or not os.access(found, os.X_OK):
        raise ImageError(f"{found or AGENT}: the agent is not built; {BUILD_AGENT}")
    return Path(found).resolve()


def _with_agent(initrd: Path, agent: Path) -> Path:
    """Returns a copy of the initrd with the agent appended, stored beside it under the agent's hash; makes
    it if it is missing, and then removes copies with other agents that are older than STALE_S seconds.
    """
    binary = hashlib.sha256(agent.read_bytes()).hexdigest()[:16]
    whole = initrd.with_name(f"initrd-{binary}")
    if not whole.exists():
        part = initrd.with_name(f".initrd-{binary}-{os.getpid()}")
        part.write_bytes(initrd.read_bytes() + initramfs.agent_part(agent))
        part.chmod(0o644)  # the mode of the image's other files
        part.rename(whole)
        for old in initrd.parent.glob("initrd-*"):
            if old != whole and time.time() - old.stat().st_mtime > STALE_S:
                old.unlink(missing_ok=True)
    return whole
