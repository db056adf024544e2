"""Measures the time that `vnet run` spends outside ramp and hold, at 350 nodes on the host kernel."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from commands import VNET, as_root, timed

from contract import manifest

TOPOLOGY = Path(__file__).parent / "mqtt.yaml"


def main() -> None:
    as_root()
    with tempfile.TemporaryDirectory() as out:
        total = timed(str(VNET), "run", str(TOPOLOGY), "--kernel", "host", "--results", out)
        spans = manifest.load(next(Path(out).rglob(manifest.NAME)).parent).phases
    inside = sum((spans[p][1] - spans[p][0]) / 1e9 for p in ("ramp", "hold"))
    row = {
        "name": "vnet run outside ramp and hold",
        "value": total - inside,
        "unit": "s",
        "peer": f"ramp and hold, {inside:.0f} s",
        "ratio": (total - inside) / inside,
    }
    json.dump([row], sys.stdout)


main()
