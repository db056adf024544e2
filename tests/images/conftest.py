"""Images are built once for the machine, guests are ended whatever a test does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from images_guest import Guest

from orchestrator.images import Image, builders, cache, locate


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this test's own; answers the directory of its images."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache.cache_dir()


def needs(*tools: str) -> None:
    missing = [
        tool for tool in tools if shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None
    ]
    if missing:
        pytest.skip(f"{', '.join(missing)}: not installed; images/packages.sh vm debian")


@pytest.fixture(scope="session")
def builtin() -> Image:
    """The built-in image, built if it is not there (half a minute, once)."""
    needs("mksquashfs", "lz4", "depmod", "apt-get")
    builders.build("builtin", force=False, say=print)
    return locate("builtin")


def built(name: str) -> Image:
    """An image that is only tested where somebody has built it: it takes minutes."""
    if not any(builders.current(image) for image in cache.images() if image.name == name):
        pytest.skip(f"image {name} is not built; vnet images build {name}")
    return locate(name)


@pytest.fixture
def boot(tmp_path: Path) -> Iterator[Callable[..., Guest]]:
    needs("qemu-system-x86_64", "qemu-img")
    guests: list[Guest] = []

    def start(image: Image, **options: object) -> Guest:
        guests.append(Guest(image, tmp_path, **options))  # type: ignore[arg-type]
        return guests[-1]

    yield start
    for guest in guests:
        guest.close()
