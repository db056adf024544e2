"""Tests that the line which a benchmark changes in a copy of the program still exists in the program."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_line_that_builds_the_sandbox_exists_once() -> None:
    text = (ROOT / "bench" / "virtual_sandbox.py").read_text()
    found = re.search(r'^DRIVER, WITH, WITHOUT = Path\("(.*)"\), "(.*)", "(.*)"$', text, re.MULTILINE)
    assert found is not None
    driver, with_, without = found.groups()
    assert (ROOT / driver).read_text().count(with_) == 1
    assert without.partition(" = ")[0] == with_.partition(" = ")[0]
