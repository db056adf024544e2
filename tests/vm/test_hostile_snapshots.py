"""Tests that machines whose stored snapshot somebody changed are booted instead, and that such a snapshot
neither delays the lab nor leads to other files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.campaign import snapshots
from orchestrator.lab.clock import SECOND
from orchestrator.lab.vm.store import Store, difference, stamps

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def stored(folder: Path) -> Store:
    store = Store(folder / "store")
    (store.begin("k") / "memory").write_text("m")
    store.commit("k", 2 * SECOND, SECOND)
    assert store.find("k") is not None
    return store


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(about=ANY | st.fixed_dictionaries({"boot_ns": ANY, "restore_ns": ANY, "files": ANY}))
def test_any_document_is_an_entry_or_none(tmp_path: Path, about: object) -> None:
    store = stored(tmp_path)
    (store.directory / "k" / "kept.json").write_text(json.dumps(about))
    found = store.find("k")
    assert found is None or found.damage, "its files are those that the document says"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=64))
def test_any_bytes_are_an_entry_or_none(tmp_path: Path, content: bytes) -> None:
    store = stored(tmp_path)
    (store.directory / "k" / "kept.json").write_bytes(content)
    assert store.find("k") is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize("other", [
    os.mkfifo,
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.symlink_to(path.with_name("memory")),
    lambda path: path.mkdir(),
    lambda path: path.write_text("[" * 100_000),
    lambda path: path.write_text('{"boot_ns": 2, "restore_ns": 1, "x": "' + "x" * (2 << 20) + '"}'),
], ids=["pipe", "device", "link", "directory", "deep", "long"])  # fmt: skip
def test_a_description_that_is_no_file_of_ours_is_none(tmp_path: Path, other: Callable[[Path], None]) -> None:
    store = stored(tmp_path)
    kept = store.directory / "k" / "kept.json"
    kept.unlink()
    other(kept)
    assert store.find("k") is None
    store.drop("k")
    assert not (store.directory / "k").exists()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("other", [
    os.mkfifo,
    lambda path: path.symlink_to(path.parent.parent.parent / "same"),
    lambda path: path.mkdir(),
], ids=["pipe", "link", "directory"])  # fmt: skip
def test_memory_that_is_no_file_is_not_restored(tmp_path: Path, other: Callable[[Path], None]) -> None:
    """Shows that even a link to a file of equal size and time is refused."""
    store = stored(tmp_path)
    memory = store.directory / "k" / "memory"
    about = memory.stat()
    (tmp_path / "same").write_text("o")
    os.utime(tmp_path / "same", ns=(about.st_atime_ns, about.st_mtime_ns))
    before = stamps(memory.parent)
    memory.unlink()
    other(memory)
    found = store.find("k")
    assert found is not None and found.damage == "its file memory is no regular file"
    assert difference(before, stamps(memory.parent)) == found.damage
    store.drop("k")
    assert (tmp_path / "same").read_text() == "o"


def test_links_in_the_place_of_directories_are_removed_and_not_followed(tmp_path: Path) -> None:
    store = stored(tmp_path)
    victim = store.directory / "k"
    (store.directory / "link").symlink_to(victim)
    assert store.find("link") is None
    store.drop("link")
    (tmp_path / "snapshots").symlink_to(victim)
    snapshots._remove(tmp_path / "snapshots")
    assert not (tmp_path / "snapshots").is_symlink() and not (store.directory / "link").is_symlink()
    assert sorted(path.name for path in victim.iterdir()) == ["kept.json", "memory"]
