"""Reads the measurements of a run or campaign as polars frames, and builds topologies in Python.

`load(DIR)` reads files of the run directory (docs/contracts/run-directory.md) and nothing else: it works on a
directory made elsewhere, or last year. `Topology` writes the files that `vnet` takes. Each part is imported
when it is asked for: pytest loads the plugin of this package in every session, of which few have a lab.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import LoadError

if TYPE_CHECKING:
    from .campaign import Campaign
    from .packets import Packets
    from .run import Run
    from .topology import Topology, TopologyError

__all__ = ["Campaign", "LoadError", "Packets", "Run", "Topology", "TopologyError", "load"]
_MODULES = {
    "Campaign": "campaign",
    "Packets": "packets",
    "Run": "run",
    "Topology": "topology",
    "TopologyError": "topology",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)


def load(directory: str | Path) -> Run | Campaign:
    """The run (results/LAB/RUN) or campaign (its --out) in `directory`; LoadError where it is neither."""
    from .campaign import Campaign
    from .run import Run

    path = Path(directory)
    if (path / "cells.jsonl").exists():
        _refuse_others(path, 0)
        return Campaign(path)
    if (path / "manifest.json").exists() or (path / "plan.json").exists():
        _refuse_others(path)
        return Run(path)
    rule = "is neither a run (manifest.json, plan.json) nor a campaign (cells.jsonl)"
    raise LoadError(f"{path}: {rule}; name a directory results/LAB/RUN or a campaign's --out")


def _refuse_others(directory: Path, *deepest: int) -> None:
    from contract import regular

    if other := regular.other_entry(directory, *deepest):
        rule = "runs and campaigns have regular files and directories only"
        raise LoadError(f"{directory}: {other}; {rule}; remove it, or copy the directory without it")
