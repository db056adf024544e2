"""What a run or a campaign has measured, as polars frames, for notebooks and programs of one's own.

`load(DIR)` reads files of the run directory (docs/contracts/run-directory.md) and nothing else: it works on a
directory made elsewhere, or last year.
"""

from __future__ import annotations

from pathlib import Path

from .campaign import Campaign
from .errors import LoadError
from .packets import Packets
from .run import Run

__all__ = ["Campaign", "LoadError", "Packets", "Run", "load"]


def load(directory: str | Path) -> Run | Campaign:
    """The run (results/LAB/RUN) or campaign (its --out) in `directory`; LoadError where it is neither."""
    path = Path(directory)
    if (path / "cells.jsonl").exists():
        return Campaign(path)
    if (path / "manifest.json").exists() or (path / "plan.json").exists():
        return Run(path)
    rule = "is neither a run (manifest.json, plan.json) nor a campaign (cells.jsonl)"
    raise LoadError(f"{path}: {rule}; name a directory results/LAB/RUN or a campaign's --out")
