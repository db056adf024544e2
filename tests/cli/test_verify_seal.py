"""Tests that `vnet verify` of a run in virtual time compares files outside the comparison with the seal."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract import seal
from contract.manifest import Manifest
from orchestrator.run.identity import identical_set
from orchestrator.verify import verify


def test_a_sealed_file_that_is_not_compared_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal, "altered", lambda _: ("verdicts.json",))
    found = verify.compare(tmp_path, Manifest(), tmp_path, {})
    assert found.identical
    assert found.changed == ("verdicts.json",)


def test_the_hashes_of_a_run_are_those_of_its_seal(tmp_path: Path) -> None:
    (tmp_path / "pcap").mkdir()
    (tmp_path / "pcap/one.pcap").write_bytes(b"frames")
    (tmp_path / "proof.json").write_text("{}")
    assert seal.digests(tmp_path) == {}
    seal.seal(tmp_path)
    known = seal.digests(tmp_path)
    assert identical_set(tmp_path, known) == identical_set(tmp_path) == known
    (tmp_path / "pcap/one.pcap").write_bytes(b"others")
    assert identical_set(tmp_path, known) == known != identical_set(tmp_path)
    assert seal.altered_records(tmp_path) == ("pcap/one.pcap",)
