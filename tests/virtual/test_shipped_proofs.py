"""Tests that the proof of every shipped topology holds in virtual time, except for quantities that frames
cannot measure.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from virtual_place import PROJECT

from orchestrator.plan.nics import uses_nics

SHIPPED = sorted(
    file for part in ("", "papers", "atlas") for file in (PROJECT / "topologies" / part).glob("*.yaml")
)
# Quantities that no number of frames can measure, each with the beginning of the reason in proof.json.
HIDDEN = (("rate", "slots let frames go together"),)


def _bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("proofs", PROJECT / "bench" / "proofs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["proofs"] = module
    spec.loader.exec_module(module)
    return module


BENCH = _bench()


@pytest.mark.sweep
@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: str(file.relative_to(PROJECT / "topologies")))
def test_every_proof_tells(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "VNET_STATE_DIR", str(tmp_path / "state"))
    try:
        labs = BENCH.labs_of(file)
    except BENCH.TopologyError as error:
        pytest.skip(f"no topology by itself: {error}")
    for lab in labs:
        if any(node.kind == "vm" for node in lab.plan.nodes):
            pytest.skip("virtual machines run in real time")
        if uses_nics(lab.plan):
            pytest.skip("NICs of the machine run in real time")
        lines = BENCH.proven(lab, tmp_path / "out", "virtual", "auto")
        untold = [line for line in lines if line.verdict == "cannot tell"]
        hidden = [
            one
            for one in untold
            if any(one.quantity == name and one.reason.startswith(why) for name, why in HIDDEN)
        ]
        assert len(hidden) == len(untold), lab.name
        assert not [line for line in lines if line.verdict == "fails"], lab.name
