"""Finds which sources of this checkout a built lab kernel comes from, and reads the record of its build."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Literal

from orchestrator.project import PROJECT

DIRECTORY = PROJECT / "images" / "kernel"
Made = Literal["source", "faults", "fallback", "older"]  # in the order of preference
LOCKS: dict[str, Made] = {
    "source.lock": "source", "faults.lock": "faults", "fallback.lock": "fallback",
}  # fmt: skip
# name of the file beside each built kernel, with recipe, source, patch, toolchain and sha256
RECORD = "kernel.json"


@functools.cache
def recipes(directory: Path = DIRECTORY) -> dict[str, Made]:
    """Maps the hash of source, patch and configuration to the name of the source; empty outside a
    checkout.
    """
    return {_hash(directory / lock): made for lock, made in LOCKS.items() if (directory / lock).exists()}


def made(binary: Path) -> Made:
    """Returns the source of this checkout from which a built kernel was made; `older` if it is
    none of them.
    """
    return recipes().get(record(binary).get("recipe", ""), "older")


def record(binary: Path) -> dict[str, str]:
    """Returns the record that build.sh wrote beside a kernel; empty if there is no readable record."""
    try:
        found: dict[str, str] = json.loads(binary.with_name(RECORD).read_text())
    except (OSError, ValueError):  # the kernel is older than such records, or a user installed it
        return {}
    return found


def _hash(lock: Path) -> str:
    lines = _without(lock, "#")
    patch = next(line.partition("=")[2] for line in lines.splitlines() if line.startswith("patch="))
    patches = "".join(lock.with_name(part).read_text() for part in patch.strip('"').split())
    text = lines + patches + _without(lock.with_name("lab_defconfig"), "##")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _without(path: Path, mark: str) -> str:
    return "".join(line + "\n" for line in path.read_text().splitlines() if not line.startswith(mark))
