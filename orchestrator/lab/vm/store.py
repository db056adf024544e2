"""Booted machines that a campaign keeps for the labs after the first: memory and disk, below one directory.

KEY/memory, KEY/disk.qcow2, and last KEY/kept.json: an entry without kept.json is invalid. It is written only
after the machine was restored from the entry, so every valid entry has been restored once.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.lab.state import replace

MARGIN_BYTES = 256 << 20  # left free for what else is written there


@dataclass(frozen=True, slots=True)
class Kept:
    """An entry; the times are of the bulk that it first came up with, divided by their number."""

    directory: Path
    boot_ns: int
    restore_ns: int

    @property
    def faster(self) -> bool:
        """Whether restoring was faster than booting."""
        return self.restore_ns < self.boot_ns


def key_of(xml: str, inputs: Iterable[Path], seed: bytes = b"") -> str:
    """The same for the same domain of the same files: `inputs` by name, size and time, `seed` whole."""
    facts = [xml]
    for path in inputs:
        about = path.stat()
        facts.append(f"{path} {about.st_size} {about.st_mtime_ns}")
    facts.append(hashlib.sha256(seed).hexdigest())
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]


class Store:
    """Used by one lab at a time. A killed lab leaves entries that are incomplete."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def find(self, key: str) -> Kept | None:
        """The entry of that key, if it is whole."""
        place = self.directory / key
        try:
            about = json.loads((place / "kept.json").read_text())
            return Kept(place, int(about["boot_ns"]), int(about["restore_ns"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def begin(self, key: str) -> Path:
        """An empty directory for a new entry."""
        self.drop(key)
        place = self.directory / key
        place.mkdir(parents=True)
        return place

    def commit(self, key: str, boot_ns: int, restore_ns: int) -> None:
        """Makes the directory an entry; keeps only the times if restoring is not faster."""
        place = self.directory / key
        if not Kept(place, boot_ns, restore_ns).faster:
            for file in place.iterdir():
                file.unlink()
        replace(place / "kept.json", json.dumps({"boot_ns": boot_ns, "restore_ns": restore_ns}) + "\n")

    def drop(self, key: str) -> None:
        """Removes everything under the key."""
        place = self.directory / key
        (place / "kept.json").unlink(missing_ok=True)
        if place.exists():
            shutil.rmtree(place)

    def has_room(self, size_bytes: int) -> bool:
        return shutil.disk_usage(self.directory).free >= size_bytes + MARGIN_BYTES
