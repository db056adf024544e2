"""Tests that golden experiments repeat: labs in virtual time give the committed hashes.

If a hash differs, find the reason; if the change is intended, run `make goldens REASON="the reason"` and
commit.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import golden_labs as golden
import pytest

from orchestrator.kernel.virtual.kernel import VirtualKernel

RECORD = json.loads(golden.RECORD.read_text())

needs_kernel = pytest.mark.skipif(
    VirtualKernel().binary is None, reason="the lab's own kernel is not built (make kernel)"
)
needs_agent = pytest.mark.skipif(
    not (golden.PROJECT / "target/release/vnet-agent").exists(), reason="no agent (make setup builds it)"
)


@pytest.mark.uml
@pytest.mark.slow
@needs_kernel
@needs_agent
@pytest.mark.parametrize("lab", golden.LABS, ids=lambda lab: lab.name)
def test_golden(lab: golden.Lab, tmp_path: Path) -> None:
    known = RECORD["labs"][lab.name]
    run_dir = golden.run(lab, tmp_path)
    content = golden.contents(run_dir)
    now = golden.hashes(content)
    if now == known["files"]:
        return
    then, here = known.get("inputs", {}), golden.inputs(run_dir)
    others = [
        f"{name} is {here.get(name, 'none')}, the golden was made with {then.get(name, 'none')}"
        for name in sorted(then.keys() | here.keys())
        if here.get(name) != then.get(name)
    ]
    differing = [
        name for name in sorted({*now, *known["files"]}) if now.get(name) != known["files"].get(name)
    ]
    words = "\n".join(golden.first_difference(lab.name, name, content.get(name, [])) for name in differing)
    if others:
        pytest.skip(f"cannot be judged here: {'; '.join(others)}. Differing: {', '.join(differing)}")
    made, built = known.get("ours", {}), golden.ours(run_dir)
    other = [
        f"{name} is {built.get(name, 'none')}, the golden was made with {made.get(name, 'none')}"
        for name in golden.OURS
        if built.get(name) != made.get(name)
    ]
    built_text = "\n".join(other) or "agent, code and closed root are those that the golden was made with"
    pytest.fail(
        f'{words}\n{built_text}\nIf this is meant: make goldens REASON="why it changed"', pytrace=False
    )


@pytest.mark.parametrize("lab", golden.LABS, ids=lambda lab: lab.name)
def test_every_change_of_a_golden_has_a_reason(lab: golden.Lab) -> None:
    known = RECORD["labs"][lab.name]
    history = known["history"]
    assert history[-1]["hash"] == golden.combined(known["files"]), (
        "changed by hand: use update.py, with a reason"
    )
    assert all(len(change["reason"].split()) >= 3 for change in history)
    following = itertools.pairwise(history)
    assert all(before["hash"] != after["hash"] for before, after in following), "a reason for no change"


@pytest.mark.parametrize("lab", golden.LABS, ids=lambda lab: lab.name)
def test_reference_data_belong_to_the_hashes(lab: golden.Lab) -> None:
    for name, known in RECORD["labs"][lab.name]["files"].items():
        if golden.kept(name):
            lines = golden.reference(lab.name, name).read_text().splitlines()
            assert len(lines) == golden.KEPT or golden.hashes({name: lines}) == {name: known}


def test_a_difference_is_told_by_its_first_line() -> None:
    lab = golden.LABS[0].name
    name = "raw/messages.csv"
    lines = golden.reference(lab, name).read_text().splitlines()
    changed = [*lines[:4], lines[4] + "1", *lines[5:]]
    assert golden.first_difference(lab, name, changed).startswith(f"{name}, line 5:\n  was {lines[4]}\n")
    assert "lines before" in golden.first_difference(lab, name, lines[:-1])
