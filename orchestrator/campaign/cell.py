"""One cell of a campaign in a process of its own, beside others: `python -m orchestrator.campaign.cell JSON`.

JSON: {settings, index, directory, run_dir, state}. Events go to standard output, one JSON line each; the last
is `cell-result` {state, error}. End of file on standard input means that the campaign is gone: as Ctrl-C.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from capture.errors import CaptureError
from orchestrator.campaign.prepare import prepare
from orchestrator.campaign.run import RunError, execute
from orchestrator.campaign.settings import Settings, request_of
from orchestrator.kernel.protocol import KernelError
from orchestrator.lab.errors import LabError
from orchestrator.topology import TopologyError, load_cell


def main() -> int:
    """Run the cell; the state and error of its end are the last line."""
    told = json.loads(sys.argv[1])
    threading.Thread(target=_lifeline, daemon=True).start()
    try:
        state, error = _run(told)
    except (KernelError, LabError, RunError, CaptureError, TopologyError, OSError) as failure:
        state, error = "failed", str(failure)
    tell({"event": "cell-result", "state": state, "error": error})
    return 0


def _run(told: dict[str, Any]) -> tuple[str, str | None]:
    settings = Settings.of(told["settings"])
    cell = load_cell(settings.file, settings.parameters, told["index"])
    prepared = prepare(request_of(settings, cell, told["state"]), Path(told["directory"]), cell.loaded)
    plan = {"ramp_ns": prepared.plan.ramp_ns, "hold_ns": prepared.plan.hold_ns}
    tell({"event": "plan", "plan": plan, "why": prepared.why, "time": settings.time})
    outcome = execute(prepared, Path(told["run_dir"]), tell, page=False)
    return "failed" if outcome.watchdog else outcome.state, outcome.error


def tell(event: dict[str, Any]) -> None:
    """One line to the campaign; it knows the passing time itself."""
    if event.get("event") != "tick":
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


def _lifeline() -> None:
    while os.read(0, 512):
        continue
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
