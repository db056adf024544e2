"""Completes nodes with container images: programs, environment and working directory that are not in the file
come from the image.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from ..language.problem import Problem
from ..language.source import Document, Path

if TYPE_CHECKING:
    from ..images.oci.archive import Archive

SCHEME = "oci:"
ENTRYPOINT = "entrypoint"  # name of the software if the file names none for the node
Images = dict[str, "Archive"]


def expand(data: Any, document: Document, problems: list[Problem]) -> tuple[Any, Images]:
    """Returns the file's data completed with the images' settings, and the images by their text in the file.
    Reports images that cannot be read, and nodes for which neither file nor image names a program.
    """
    images: Images = {}
    if not isinstance(data, dict):
        return data, images
    changed = dict(data)
    for section in ("nodes", "groups"):
        machines = data.get(section)
        if not isinstance(machines, dict):
            continue
        found = dict(machines)
        for name, machine in machines.items():
            image = machine.get("image") if isinstance(machine, dict) else None
            if not isinstance(image, str) or not image.startswith(SCHEME) or machine.get("kind") == "vm":
                continue
            place = (section, name, "image")
            archive = images.get(image) or _read(image, place, document, problems)
            if archive is None:
                continue
            images[image] = archive
            found[name] = _filled(machine, archive)
            if not found[name].get("software"):
                rule = "names no program, and the node no software"
                problems.append(
                    document.problem(place, image, rule, "write `software: {app: {command: ...}}`")
                )
        changed[section] = found
    return changed, images


def _read(image: str, place: Path, document: Document, problems: list[Problem]) -> Archive | None:
    from ..images.errors import ImageError  # imported here, because most files name no image
    from ..images.oci.archive import read

    try:
        return read(archive_path(image, document.file))
    except ImageError as error:
        rule, _, remedy = str(error).rpartition("; ")
        problems.append(document.problem(place, image, rule, remedy))
        return None


def archive_path(image: str, file: str) -> FilePath:
    """Returns the archive's absolute path; a relative one is relative to the topology file."""
    return (FilePath(file).parent / image.removeprefix(SCHEME)).absolute()


def _filled(machine: dict[str, Any], archive: Archive) -> dict[str, Any]:
    settings = archive.settings
    software = machine.get("software")
    if not software and settings.argv:
        software = {ENTRYPOINT: {"command": [_literal(word) for word in settings.argv]}}
    if not isinstance(software, dict):
        return machine
    env = {key: _literal(value) for key, value in settings.env.items()}
    filled: dict[Any, Any] = {}
    for name, one in software.items():
        if isinstance(one, dict) and "command" in one and isinstance(one.get("env", {}), dict):
            workdir = {"workdir": settings.workdir} if settings.workdir and "workdir" not in one else {}
            one = {**one, **workdir, "env": {**env, **one.get("env", {})}}
        filled[name] = one
    return {**machine, "software": filled}


def _literal(text: str) -> str:
    """Returns a template that renders to exactly the given text."""
    if not any(mark in text for mark in ("{{", "{%", "{#")):
        return text
    return "{% raw %}" + text + "{% endraw %}"
