"""Provides fixtures that build each image once for the machine, and that end guests even if a test fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from images_guest import Guest
from images_needs import needs

from orchestrator.images import Image, builders, cache, locate


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes an empty cache for this test and returns the directory of its images."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache.cache_dir()


@pytest.fixture(scope="session")
def builtin() -> Image:
    """Returns the built-in image; builds it if it is missing (half a minute, once)."""
    needs("mksquashfs", "lz4", "depmod", "apt-get")
    builders.build("builtin", force=False, say=print)
    return locate("builtin")


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
