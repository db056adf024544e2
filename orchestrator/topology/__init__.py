"""Parses and checks topology files: YAML text becomes a typed `Topology`; the machine is not examined.

The names below are imported on first use, so that commands that read no topology start faster.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..language.problem import Problem, TopologyError
    from .campaign import Campaign, Cell, load_campaign, load_cell
    from .loading import Topology, load

__all__ = ["Campaign", "Cell", "Problem", "Topology", "TopologyError", "load", "load_campaign", "load_cell"]

_HOME = {
    "Campaign": ".campaign",
    "Cell": ".campaign",
    "load_campaign": ".campaign",
    "load_cell": ".campaign",
    "Topology": ".loading",
    "load": ".loading",
    "Problem": "..language.problem",
    "TopologyError": "..language.problem",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name], __name__), name)
