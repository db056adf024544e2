"""What a benchmark takes out of a copy of the program still stands in the program."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_line_that_asks_for_walls_stands_once() -> None:
    text = (ROOT / "bench" / "virtual_walls.py").read_text()
    found = re.search(r'^DRIVER, ASKS, NONE = Path\("(.*)"\), "(.*)", "(.*)"$', text, re.MULTILINE)
    assert found is not None
    driver, asks, none = found.groups()
    assert (ROOT / driver).read_text().count(asks) == 1
    assert none.partition(" = ")[0] == asks.partition(" = ")[0]
