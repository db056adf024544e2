"""Tests which of two kernels runs a plan: the kernel that can set wrong clocks is used only if the plan has
such events.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.kernel.uml.binaries import UmlBinary
from orchestrator.kernel.virtual.kernel import FAULTS, MARK, VirtualKernel
from orchestrator.plan.build import make_plan
from orchestrator.topology import load

FILE = """\
name: small
segments: {lan: {subnet: 10.50.0.0/24}}
nodes: {server: {segment: lan, software: {web: {command: "sleep 100"}}}}
run: {hold: 20 s}
timeline: [EVENT]
"""


@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        ("{at: hold, clock: server, offset: -1 s, for: 1 s}", "faults"),
        ("{at: hold, schedule: server, for: 1 s}", "faults"),
        ("{at: hold, freeze: server, for: 1 s}", "plain"),
    ],
)
def test_only_a_plan_with_such_events_gets_the_kernel_for_them(
    tmp_path: Path, event: str, wanted: str
) -> None:
    binaries = []
    for name, content in (("plain", MARK), ("faults", MARK + FAULTS)):
        (tmp_path / name).write_bytes(content)
        binaries.append(UmlBinary(tmp_path / name, "7.3", "built", None))
    (tmp_path / "small.yaml").write_text(FILE.replace("EVENT", event))
    plan = make_plan(load(tmp_path / "small.yaml", {}))
    chosen = VirtualKernel(binaries).binary_of(plan)
    assert chosen is not None and chosen.path.name == wanted
    alone = VirtualKernel(binaries[:1])
    missing = [one.what for one in alone.can(plan) if "clock" in one.what or "schedule" in one.what]
    assert bool(missing) == (wanted == "faults") == (alone.binary_of(plan) is None)
