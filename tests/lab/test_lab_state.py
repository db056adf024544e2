"""Tests that a damaged lab.json counts as none, so that `vnet ls` and `vnet down` go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.lab.state import processes, read_lab


@pytest.mark.parametrize("content", [b'{"lab": "\xff', b"\xff\xfe", b'{"la', b"[1]", b"[" * 100_000, b""])
def test_a_damaged_file_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lab.json").write_bytes(content)
    assert read_lab(tmp_path) == {} and processes(tmp_path) == []
