"""Runs one cell of a campaign in a process of its own, which engines/resident.py forks.

The first line of standard input is a JSON object {request, plan, directory, run_dir}. The process writes
events to standard output, one JSON line each; the last is `cell-result` {state, error}. The state is `unfit`
if this machine cannot carry the cell. End of file on standard input means that the client has ended; it acts
as Ctrl-C.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from contract import codec
from contract.plan import Plan
from orchestrator.campaign.cells import FAILURES
from orchestrator.kernel.protocol import KernelError
from orchestrator.language.problem import TopologyError
from orchestrator.project import keep_others_out
from orchestrator.run.follow import STOPS
from orchestrator.run.prepare import Prepared, Request, prepare_plan
from orchestrator.run.run import execute


def main() -> int:
    """Runs the cell that standard input describes; writes its end state and error as the last line.

    Returns 0.
    """
    keep_others_out()
    told = json.loads(sys.stdin.buffer.readline())
    # the signals act like Ctrl-C, even without a lab and if the parent process ignored them
    for number in STOPS:
        signal.signal(number, signal.default_int_handler)
    threading.Thread(target=_lifeline, daemon=True).start()
    try:
        state, error = _run(told)
    except KeyboardInterrupt:
        state, error = "interrupted", None
    tell({"event": "cell-result", "state": state, "error": error})
    return 0


def _run(told: dict[str, Any]) -> tuple[str, str | None]:
    try:
        prepared = _prepared(told)
    except (KernelError, TopologyError, OSError) as failure:
        return "unfit", str(failure)
    plan = {"ramp_ns": prepared.plan.ramp_ns, "hold_ns": prepared.plan.hold_ns}
    tell({"event": "plan", "plan": plan, "why": prepared.why, "time": prepared.request.time})
    try:
        outcome = execute(prepared, Path(told["run_dir"]), tell, page=False)
    except FAILURES as failure:
        return "failed", str(failure)
    return "failed" if outcome.watchdog else outcome.state, outcome.error


def _prepared(told: dict[str, Any]) -> Prepared:
    request = Request(**{**told["request"], "file": Path(told["request"]["file"])})
    return prepare_plan(request, codec.from_json(Plan, told["plan"]), Path(told["directory"]))


def tell(event: dict[str, Any]) -> None:
    """Writes an event as a JSON line to standard output; leaves out `tick`, which the client generates
    itself.
    """
    if event.get("event") != "tick":
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


def _lifeline() -> None:
    while os.read(0, 512):
        continue
    os.kill(os.getpid(), signal.SIGTERM)
