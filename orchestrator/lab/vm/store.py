"""Stores booted machines of a campaign for its later labs: memory and disk of each in a directory KEY.

KEY/kept.json is written last, after the machine was restored from the entry; an entry without it is invalid.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from contract import regular
from orchestrator.lab.jsonlines import STRANGE
from orchestrator.lab.state import replace

KEPT = "kept.json"
MOST_BYTES = 1 << 20  # largest kept.json, in bytes; it usually has about 200
OTHER = [-1, -1]  # stands for an entry that is no regular file
MARGIN_BYTES = 256 << 20  # bytes that stay free on the disk for other data


@dataclass(frozen=True, slots=True)
class Kept:
    """A stored machine; its times are the mean per machine of the group in which it was first booted and
    restored. damage: the first difference between its files and the stored ones; None if there is none.
    """

    directory: Path
    boot_ns: int
    restore_ns: int
    damage: str | None = None

    @property
    def faster(self) -> bool:
        """Whether restoring was faster than booting, by these times."""
        return self.restore_ns < self.boot_ns


def stamps(place: Path) -> dict[str, list[int]]:
    """Returns the size and the modification time (ns) of each file of an entry except kept.json, by name;
    OTHER for an entry that is no regular file, such as a link, a pipe or a directory.
    """
    found = ((path.name, path.lstat()) for path in sorted(place.iterdir()) if path.name != KEPT)
    return {
        name: [about.st_size, about.st_mtime_ns] if stat.S_ISREG(about.st_mode) else OTHER
        for name, about in found
    }


def difference(then: Mapping[str, Sequence[int]], now: Mapping[str, Sequence[int]]) -> str | None:
    """Describes the first file that differs between two results of `stamps`; None if none does."""
    for name in sorted(then.keys() | now.keys()):
        if name not in now:
            return f"its file {name} is gone"
        if name not in then:
            return f"its file {name} was not stored with it"
        if now[name] == OTHER:
            return f"its file {name} is no regular file"
        if then[name][0] != now[name][0]:
            return f"its file {name} has {now[name][0]} bytes, and had {then[name][0]}"
        if then[name][1] != now[name][1]:
            return f"its file {name} was changed after it was stored"
    return None


def key_of(xml: str, inputs: Iterable[Path], seed: bytes = b"") -> str:
    """Returns the key of a machine: equal for equal XML, equal input files (by name, size and time) and an
    equal seed.
    """
    facts = [xml]
    for path in inputs:
        about = path.stat()
        facts.append(f"{path} {about.st_size} {about.st_mtime_ns}")
    facts.append(hashlib.sha256(seed).hexdigest())
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]


class Store:
    """A directory of stored machines for one lab at a time. A killed lab leaves incomplete entries."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def find(self, key: str) -> Kept | None:
        """Returns the entry of that key, with `damage` if its files were changed; None if it is absent,
        incomplete or unreadable.
        """
        place = self.directory / key
        if place.is_symlink():
            return None
        try:
            with regular.open_read(place / KEPT) as file:
                about = json.loads(file.read(MOST_BYTES))
            damage = difference(about.get("files", {}), stamps(place))
            return Kept(place, int(about["boot_ns"]), int(about["restore_ns"]), damage)
        except (OSError, *STRANGE):
            return None

    def begin(self, key: str) -> Path:
        """Removes the key's entry, if any; makes and returns an empty directory for a new one."""
        self.drop(key)
        place = self.directory / key
        place.mkdir(parents=True)
        return place

    def commit(self, key: str, boot_ns: int, restore_ns: int) -> None:
        """Makes the entry valid, with its times (ns) and the stamps of its files; first removes its memory
        and disk if restoring is not faster.
        """
        place = self.directory / key
        if not Kept(place, boot_ns, restore_ns).faster:
            for file in place.iterdir():
                file.unlink()
        about = {"boot_ns": boot_ns, "restore_ns": restore_ns, "files": stamps(place)}
        replace(place / KEPT, json.dumps(about) + "\n")

    def drop(self, key: str) -> None:
        """Removes the entry of the key, with everything in its directory; does nothing if it is absent.

        A link in its place is removed, not followed.
        """
        place = self.directory / key
        if place.is_symlink() or place.is_file():
            place.unlink()
            return
        with suppress(FileNotFoundError, IsADirectoryError):
            (place / KEPT).unlink()  # removed first, so that a partly removed entry no longer counts
        if place.exists():
            shutil.rmtree(place)

    def has_room(self, size_bytes: int) -> bool:
        """Returns whether the store's disk has room for that many bytes and 256 MiB more."""
        return shutil.disk_usage(self.directory).free >= size_bytes + MARGIN_BYTES
