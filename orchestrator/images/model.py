"""Defines an image, and converts it from and to `image.json`, the file in its directory that describes it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from orchestrator.images.errors import ImageError

FORMAT = 1
Kind = Literal["initramfs", "disk"]


@dataclass(frozen=True, slots=True)
class Image:
    """An image of a virtual machine: its files, None for those that it lacks, and its default memory."""

    name: str
    kind: Kind
    directory: Path
    kernel: Path | None
    initrd: Path | None
    append: str
    disk: Path | None
    memory_bytes: int
    agent: str  # path of the agent in the guest
    guest_agent: bool  # whether the guest runs qemu-ga
    made: dict[str, str] = field(default_factory=dict)  # input of the build -> hash or version


def read_image(directory: Path) -> Image:
    """Returns the image that the directory's image.json describes. Raises ImageError if the description is
    missing, broken or of another format, or if a file of the image is missing.
    """
    file = directory / "image.json"
    try:
        raw: dict[str, Any] = json.loads(file.read_text())
        if raw["format"] != FORMAT:
            raise ImageError(
                f"{file}: format {raw['format']} is not {FORMAT}; vnet images build {raw['name']} --force"
            )
        return Image(
            name=raw["name"],
            kind=raw["kind"],
            directory=directory,
            kernel=_within(directory, raw["kernel"]),
            initrd=_within(directory, raw["initrd"]),
            append=raw["append"],
            disk=_within(directory, raw["disk"]),
            memory_bytes=raw["memory_bytes"],
            agent=raw["agent"],
            guest_agent=raw["guest_agent"],
            made=raw["made"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ImageError(f"{file}: not the description of an image: {error}; remove the directory") from None


def _within(directory: Path, name: str | None) -> Path | None:
    if name is None:
        return None
    path = directory / name
    if not path.is_file():
        raise ImageError(
            f"{path}: missing from the image; remove {directory}, then vnet images build makes it again"
        )
    return path


def describe(image: Image) -> dict[str, Any]:
    """Returns the content of image.json, with paths relative to the image's directory."""

    def relative(path: Path | None) -> str | None:
        return None if path is None else str(path.relative_to(image.directory))

    return {
        "format": FORMAT,
        "name": image.name,
        "kind": image.kind,
        "kernel": relative(image.kernel),
        "initrd": relative(image.initrd),
        "append": image.append,
        "disk": relative(image.disk),
        "memory_bytes": image.memory_bytes,
        "agent": image.agent,
        "guest_agent": image.guest_agent,
        "made": image.made,
    }
