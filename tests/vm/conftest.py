"""Lets the tests of this directory import the plans and lab processes of tests/lab, and the browser of
tests/cli.
"""

import sys
from pathlib import Path

for part in ("lab", "cli"):
    sys.path.insert(0, str(Path(__file__).parents[1] / part))

from vm_running import daemon, start  # noqa: E402

__all__ = ["daemon", "start"]  # fixtures
