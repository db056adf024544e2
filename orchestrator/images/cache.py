"""Manages the directory of built images: one directory NAME-HASH each, which is complete or absent."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from orchestrator.images.errors import ImageError
from orchestrator.images.model import Image, describe, read_image

_DIRECTORY = re.compile(r"(?P<name>[a-z][a-z0-9-]*)-(?P<hash>[0-9a-f]{16})")


def cache_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Returns vnet/images below XDG_CACHE_HOME, or ~/.cache/vnet/images if that variable is empty or not
    set.
    """
    base = env.get("XDG_CACHE_HOME") or str(Path(env.get("HOME") or "~").expanduser() / ".cache")
    return Path(base) / "vnet" / "images"


def directories(name: str | None = None, root: Path | None = None) -> list[Path]:
    """Returns the directories NAME-HASH that hold an image.json, those of one name or all (None), sorted by
    name, the newest of a name first; returns none without a cache. `root` replaces the cache directory.
    """
    root = root or cache_dir()
    found = []
    for path in root.iterdir() if root.is_dir() else ():
        match = _DIRECTORY.fullmatch(path.name)
        if match and name in (None, match["name"]) and (path / "image.json").is_file():
            found.append((match["name"], -path.stat().st_mtime_ns, path))
    return [path for _, _, path in sorted(found)]


def images(root: Path | None = None) -> list[Image]:
    """Reads and returns all images in the cache. Raises ImageError if one of them is broken."""
    return [read_image(path) for path in directories(root=root)]


@contextmanager
def publish(name: str, digest: str, root: Path | None = None) -> Iterator[Path]:
    """Yields a directory to build in; it becomes NAME-HASH if the block succeeds, in place of an older one,
    and is removed if it fails. Raises ImageError for an OSError of the block.

    Builds of one name wait for each other; a build removes the files of an interrupted one.
    """
    root = root or cache_dir()
    root.mkdir(parents=True, exist_ok=True)
    with (root / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in root.glob(f".{name}.part-*"):
            shutil.rmtree(left)
        part = Path(tempfile.mkdtemp(prefix=f".{name}.part-", dir=root))
        try:
            yield part
            part.chmod(0o755)
            for file in part.iterdir():
                file.chmod(0o644)  # whatever the umask, so that QEMU's account can read it
            final = root / f"{name}-{digest}"
            if final.exists():
                remove(final)
            part.rename(final)
        except OSError as error:
            raise ImageError(f"{root}: {error.strerror or error}{_room(root)}") from error
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _room(root: Path) -> str:
    free = shutil.disk_usage(root).free // 2**20
    return f"; {free} MiB are free, give it more room or set XDG_CACHE_HOME" if free < 1024 else ""


def write_description(image: Image) -> None:
    text = json.dumps(describe(image), indent=2, sort_keys=True)
    (image.directory / "image.json").write_text(text + "\n")


def remove(directory: Path) -> None:
    """Removes an image; renames its directory first, so that no partial image is ever found."""
    gone = directory.with_name(f".{directory.name}.gone-{os.getpid()}")
    directory.rename(gone)
    shutil.rmtree(gone)
