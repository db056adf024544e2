"""Skips tests on machines without the programs or images that they need."""

from __future__ import annotations

import os
import shutil

import pytest

from orchestrator.images import Image, builders, cache, locate


def needs(*tools: str) -> None:
    missing = [
        tool for tool in tools if shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None
    ]
    if missing:
        pytest.skip(f"{', '.join(missing)}: not installed; images/packages.sh vm debian")


def built(name: str) -> Image:
    """Returns an image; skips the test if it is not built, because a build takes minutes."""
    if not any(builders.current(image) for image in cache.images() if image.name == name):
        pytest.skip(f"image {name} is not built; vnet images build {name}")
    return locate(name)
