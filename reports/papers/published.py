"""Reads the published results of a paper from its reference.yaml."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML


@functools.cache
def reference(room: Path) -> dict[str, Any]:
    """Returns the printed values of a paper, from the reference.yaml in its directory `room`; cached. OSError
    if the file cannot be read.
    """
    with (room / "reference.yaml").open(encoding="utf-8") as file:
        return dict(YAML(typ="safe").load(file))
