"""Tests that two builds of the built-in image are the same, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.images import Image, builders, cache


@pytest.mark.sweep  # one build more than the image that every test of a machine boots
def test_the_same_inputs_give_the_same_bytes(
    builtin: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = cache.cache_dir().parent / "apt"
    (tmp_path / "vnet").mkdir()
    (tmp_path / "vnet" / "apt").symlink_to(fetched)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    again = builders.build("builtin", force=True, say=print)
    assert again.directory != builtin.directory
    assert again.made == builtin.made
    for file in ("kernel", "initrd", "image.json"):
        assert (again.directory / file).read_bytes() == (builtin.directory / file).read_bytes(), file
