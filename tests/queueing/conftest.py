"""Makes the helpers of the neighbouring test directories (labs and places) importable here."""

from __future__ import annotations

import sys
from pathlib import Path

for suite in ("lab", "virtual"):
    sys.path.append(str(Path(__file__).resolve().parents[1] / suite))
