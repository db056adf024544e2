"""Makes the plans of tests/lab importable here."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "lab"), str(TESTS / "cli"), str(TESTS / "remote"), str(TESTS / "multi_host")]
