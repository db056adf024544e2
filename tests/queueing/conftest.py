"""Labs and places of the suites next door, for queues."""

from __future__ import annotations

import sys
from pathlib import Path

for suite in ("lab", "virtual"):
    sys.path.append(str(Path(__file__).resolve().parents[1] / suite))
