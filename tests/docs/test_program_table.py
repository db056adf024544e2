"""Tests that the table of programs in docs/virtual-time.md is that of the tests' own list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "docs" / "program_table.py"


def test_the_page_has_the_table_of_the_tests() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--check"], check=False)
    assert done.returncode == 0, "write it again: python docs/program_table.py"
