"""Tests that the proof of every shipped topology holds in virtual time, except for quantities that frames
cannot measure, and that docs/proofs.json and the docs have the counts.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from virtual_place import PROJECT, kernel_missing


def _bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("proofs", PROJECT / "bench" / "proofs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["proofs"] = module
    spec.loader.exec_module(module)
    return module


BENCH = _bench()
RECORDED: dict[str, Any] = json.loads(BENCH.RECORD.read_text(encoding="utf-8"))
FILES = {str(file.relative_to(PROJECT / "topologies")): file for file in BENCH.shipped()}
# Cheap ones in which each quantity occurs: plain, shares, jitter by a table, half duplex, slots, a trace.
CHEAP = {"pair.yaml", "dumbbell.yaml", "every-impairment.yaml", "trace.yaml", "papers/substation-flat.yaml"}
TRIED = [pytest.param(name, marks=[] if name in CHEAP else [pytest.mark.sweep]) for name in FILES]


@pytest.mark.parametrize("name", TRIED)
def test_every_proof_tells(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if why := kernel_missing():
        pytest.skip(why)
    monkeypatch.setitem(os.environ, "VNET_STATE_DIR", str(tmp_path / "state"))
    if isinstance(RECORDED[name], str):
        with pytest.raises((BENCH.TopologyError, BENCH.KernelError), match=re.escape(RECORDED[name])):
            [BENCH.proven(lab, tmp_path / "out", "virtual", "auto") for lab in BENCH.labs_of(FILES[name])]
        return
    proofs = [BENCH.proven(lab, tmp_path / "out", "virtual", "auto") for lab in BENCH.labs_of(FILES[name])]
    other = [line for lines in proofs for line in lines if line.verdict != "holds" and not BENCH.hidden(line)]
    assert not other
    assert BENCH.counts(proofs) == RECORDED[name]


def test_the_record_has_every_shipped_file_and_the_docs_its_sums() -> None:
    assert list(RECORDED) == list(FILES)
    total: Counter[str] = Counter()
    for row in RECORDED.values():
        total.update(row if isinstance(row, dict) else {"left out": 1})
    assert set(total) <= {"labs", "holds", "hidden", "left out"}, "nothing else is cannot tell, nothing fails"
    files = len(RECORDED) - total["left out"]
    said = (
        f"{total['holds']:,} quantities of {total['labs']} labs of {files} files hold, none fails, "
        f"and {total['hidden']} rates behind slots cannot be told"
    )
    page = " ".join((PROJECT / "docs" / "networks.md").read_text(encoding="utf-8").split())
    assert said in page
