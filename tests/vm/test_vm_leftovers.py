"""Tests which libvirt daemon `vnet down` queries for a lab's remaining machines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.lab.vm import leftovers


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look as another user")
def test_a_daemon_that_only_root_may_ask_is_none_for_an_ordinary_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a /run/libvirt that an ordinary user may not enter counts as no daemon, and raises no
    PermissionError.
    """
    closed = tmp_path / "libvirt"
    closed.mkdir(mode=0o700)
    (closed / "libvirt-sock").touch()
    monkeypatch.setattr(leftovers, "SYSTEM_SOCKET", closed / "libvirt-sock")
    assert leftovers.uri_of(Path("/nowhere")) == leftovers.SYSTEM
    os.seteuid(65534)
    try:
        assert leftovers.uri_of(Path("/nowhere")) is None
    finally:
        os.seteuid(0)
