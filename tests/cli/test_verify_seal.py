"""`vnet verify` of a run in virtual time: files that the comparison leaves out are held against the seal."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.manifest import Manifest
from orchestrator.verify import verify


def test_a_sealed_file_that_is_not_compared_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify.seal, "altered", lambda _: ("verdicts.json",))
    found = verify.compare(tmp_path, Manifest(), tmp_path, {})
    assert found.identical
    assert found.changed == ("verdicts.json",)
