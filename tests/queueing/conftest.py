"""Lets the tests of this directory import the helper modules of tests/lab and tests/virtual, such as
lab_plans.
"""

from __future__ import annotations

import sys
from pathlib import Path

for suite in ("lab", "virtual"):
    sys.path.append(str(Path(__file__).resolve().parents[1] / suite))
