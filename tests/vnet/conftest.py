"""Lets the tests of this directory import the synthetic run directories of tests/reports."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "reports"))
