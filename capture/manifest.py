"""Adds the reduction's warnings to a run's manifest."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from capture.rawfile import Warned

PREFIX = "reduce-"


def add_warnings(path: Path, warnings: tuple[Warned, ...]) -> None:
    """Puts `warnings` in place of those of an earlier reduction; the file is replaced as a whole."""
    manifest = json.loads(path.read_text())
    kept = [w for w in manifest.get("warnings", []) if not w["code"].startswith(PREFIX)]
    fresh = kept + [asdict(warning) for warning in warnings]
    if fresh == manifest.get("warnings", []):
        return
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(manifest | {"warnings": fresh}, indent=1) + "\n")
    part.replace(path)
