"""How the lab process is called: its arguments and its environment, the same under every kernel."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.kernel.protocol import Launch

CODE_ROOT = Path(__file__).resolve().parents[2]


def arguments(launch: Launch, state_dir: Path, agent: Path, prefix: str = "") -> list[str]:
    """Arguments of `python -m orchestrator.lab`; `prefix` stands before paths under /host in a guest."""
    found = ["-S", "-s", "-m", "orchestrator.lab", str(launch.run_dir / "plan.json")]
    found += [
        "--run-dir",
        str(launch.run_dir),
        "--state-dir",
        str(state_dir),
        "--agent",
        prefix + str(agent),
    ]
    return found + ["--scenario"] * launch.scenario + ["--keep"] * launch.keep


def environment(
    base: Mapping[str, str], kernel: Mapping[str, str], machine: Mapping[str, Any]
) -> dict[str, str]:
    """What the lab process finds in its environment (docs/contracts.md)."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    kept = {name: base[name] for name in ("HOME", "TZ", "TERM", "LANG") if name in base}
    return kept | {
        "PATH": path,
        "PYTHONPATH": os.fspath(CODE_ROOT),
        "VNET_KERNEL": json.dumps(dict(kernel)),
        "VNET_MACHINE": json.dumps(dict(machine)),
    }
