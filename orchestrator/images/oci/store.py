"""Stores unpacked images, each in a directory named by its digest, which is complete or absent."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from orchestrator.images.cache import cache_dir
from orchestrator.images.oci.archive import Archive, member, opened
from orchestrator.images.oci.layers import Tree


def store(env: Mapping[str, str] = os.environ) -> Path:
    """Returns vnet/oci below XDG_CACHE_HOME, or ~/.cache/vnet/oci if that variable is empty or not set."""
    return cache_dir(env).with_name("oci")


def unpacked(archive: Archive, env: Mapping[str, str] = os.environ) -> Path:
    """Returns the image's root directory; unpacks it if it is absent. Processes that unpack the same image
    wait for each other.

    Raises ImageError and leaves nothing if that fails.
    """
    place = store(env)
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o700)
    root = place / archive.digest
    with (place / f".{archive.digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if root.is_dir():
            return root
        for left in place.glob(f".{archive.digest}.part-*"):
            shutil.rmtree(left)
        part = Path(tempfile.mkdtemp(prefix=f".{archive.digest}.part-", dir=place))
        try:
            inside = part / "root"
            inside.mkdir(0o755)
            tree = Tree(inside, part / "layer")
            with opened(archive.path) as tar:
                for layer in archive.layers:
                    tree.add(member(tar, layer.name), layer.diff_id)
            tree.finish()
            inside.rename(root)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return root
