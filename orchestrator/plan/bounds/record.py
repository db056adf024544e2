"""Writes bounds.json beside the plan in a run directory; the report draws these bounds with the measured
delays.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from contract import regular
from contract.plan import Plan

from ...software.registry import KINDS
from .render import as_document
from .report import bounds_of

NAME = "bounds.json"
# In virtual time an end node takes a few system calls of 5 us, and some 50 us to wake up (docs/bounds.md). In
# real time there is no upper bound for the machine's share.
NODE_NS = {"virtual": 100_000}


def record_bounds(
    run_dir: Path, plan: Plan, time: str, node_ns: int | None = None, machine_bps: int | None = None
) -> None:
    """Computes the plan's bounds and writes bounds.json; does nothing if no flow of the plan has an arrival
    curve. `node_ns` or `machine_bps` None: takes the value of an existing file, else for `node_ns` the
    default of the run's kind of time (100 us in virtual time, else 0), for `machine_bps` 0.
    """
    if not _bounded(plan):
        return
    said = _document(run_dir / NAME)
    if node_ns is None:
        node_ns = int(said.get("node_ns", NODE_NS.get(time, 0)))
    if machine_bps is None:
        machine_bps = int(said.get("machine_bps", 0))
    found = as_document(bounds_of(plan, machine_bps, node_ns))
    text = json.dumps({"node_ns": node_ns, "machine_bps": machine_bps, **found}, indent=1)
    with regular.named(run_dir / NAME):
        (run_dir / NAME).write_text(text + "\n", encoding="utf-8")


def _bounded(plan: Plan) -> bool:
    """Returns whether any flow of the plan has an arrival curve, so that bounds can be computed."""
    at = {s.session.endpoint: s for node in plan.nodes for s in node.software if s.session}
    return any(
        not isinstance(KINDS[by.kind].offers(by, flow), str)
        for flow in plan.flows
        if (by := at.get(flow.sender)) is not None and by.kind in KINDS
    )


def _document(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
