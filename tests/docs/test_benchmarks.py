"""Tests that benchmarks fit the program and the pages that print their numbers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAWS = (
    "normal, scatter 3 %", "normal, scatter 8 %", "normal, scatter 20 %", "p99 of 1,000 exponential times",
    "lognormal, scatter 20 %",
)  # fmt: skip


def test_the_line_that_builds_the_sandbox_exists_once() -> None:
    text = (ROOT / "bench" / "virtual_sandbox.py").read_text()
    found = re.search(r'^DRIVER, WITH, WITHOUT = Path\("(.*)"\), "(.*)", "(.*)"$', text, re.MULTILINE)
    assert found is not None
    driver, with_, without = found.groups()
    assert (ROOT / driver).read_text().count(with_) == 1
    assert without.partition(" = ")[0] == with_.partition(" = ")[0]


@pytest.mark.sweep
def test_false_alarms_are_as_rare_as_the_pages_say() -> None:
    done = subprocess.run([sys.executable, ROOT / "bench" / "alarms.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {row["name"]: row["value"] for row in json.loads(done.stdout)}
    assert "2 of 200. With" in (ROOT / "docs/compare.md").read_text()
    assert found["false alarms of 200, invented"] == 2
    page = (ROOT / "docs/repetitions.md").read_text()
    missed = [found[f"until, {name}"] for name in LAWS]
    plain = [found[f"uncorrected, {name}"] for name in LAWS]
    assert all(f"| {a:.1f} % | {b:.1f} % |" in page for a, b in zip(missed, plain, strict=True))
    assert max(missed) < 5 < min(plain)
