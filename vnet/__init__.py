"""Reads the measurements of a run or campaign as polars frames, brings labs up, and builds topologies in
Python.

`load(DIR)` reads the files of a run directory (docs/contracts/run-directory.md) and needs no lab, so it also
reads runs of other machines. `lab(FILE)` brings a lab up for a `with` block. `Topology` writes topology
files. `__getattr__` imports each submodule at its first use, because pytest loads this package's plugin in
every session and few sessions have a lab.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import LoadError

if TYPE_CHECKING:
    from .campaign import Campaign
    from .labs import Lab
    from .packets import Packets
    from .run import Run
    from .topology import Topology, TopologyError

__all__ = ["Campaign", "Lab", "LoadError", "Packets", "Run", "Topology", "TopologyError", "lab", "load"]
_MODULES = {
    "Campaign": "campaign",
    "Lab": "labs",
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
    """Opens `directory` as a run (results/LAB/RUN) or as a campaign (its --out); LoadError if it is neither
    or holds anything but regular files and directories.
    """
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


def lab(
    topology: str | Path | Topology,
    *,
    results: str | Path = "results",
    kernel: str = "auto",
    time: str = "real",
    seed: int | None = None,
    scenario: bool = False,
    **parameters: object,
) -> AbstractContextManager[Lab]:
    """Brings a lab up for a `with` block and takes it down at its end, also after an exception.

    topology: a file, or a Topology. scenario: runs the file's scenario to its end first, as virtual time
    always does, which leaves nothing up. Its run directory is below `results`. Other keywords are the file's
    parameters. Raises UnableError if this machine cannot carry the lab, LabError if it does not come up,
    ValueError for a kernel in virtual time.
    """
    from .labs import opened

    how = {"kernel": kernel, "time": time, "seed": seed, "scenario": scenario}
    return opened(topology, Path(results), parameters, how)


def _refuse_others(directory: Path, *deepest: int) -> None:
    from contract import regular

    if other := regular.other_entry(directory, *deepest):
        rule = "runs and campaigns have regular files and directories only"
        raise LoadError(f"{directory}: {other}; {rule}; remove it, or copy the directory without it")
