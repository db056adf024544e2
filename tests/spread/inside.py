"""Labs over hosts of their own, inside a lab kernel: run by test_spread.py, not collected by itself."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lab"), str(HERE.parent / "cli")]

from by_hand import laid_over  # noqa: E402
from rack import Rack  # noqa: E402

from capture import manifest  # noqa: E402
from orchestrator.campaign.prepare import Request, prepare_plan  # noqa: E402
from orchestrator.campaign.run import execute, new_run_dir  # noqa: E402
from orchestrator.model import Host, Plan  # noqa: E402
from orchestrator.plan.build import make_plan  # noqa: E402
from orchestrator.topology import load  # noqa: E402

PROJECT = HERE.parents[1]
PAIR = PROJECT / "topologies" / "pair.yaml"


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    made = Rack(Path("/tmp/r"), 2, 5)
    os.environ |= made.env
    os.environ["VNET_STATE_DIR"] = "/tmp/s"
    yield made
    made.close()


def pair(rack: Rack) -> Plan:
    plan = make_plan(load(PAIR, {"hold": "3s", "delay": "60ms"}))
    hosts = [Host(h.name, h.url) for h in rack.hosts]
    return laid_over(plan, hosts, {"left": "h1", "right": "h2"}, mtu=1500)


class Shown:
    def __call__(self, event: object) -> None:
        print(event)


def test_a_pair(rack: Rack, tmp_path: Path) -> None:
    plan = pair(rack)
    began = time.monotonic()
    prepared = prepare_plan(Request(PAIR, {}, None, "auto", None, "real"), plan, lambda: plan, tmp_path)
    print("prepared", time.monotonic() - began)
    run_dir = new_run_dir(tmp_path / plan.lab)
    outcome = execute(prepared, run_dir, Shown(), tables=False)
    print("ran", time.monotonic() - began)
    print(outcome)
    print((run_dir / "raw" / "lab.log").read_text())
    for f in sorted(run_dir.rglob("*")):
        print(f, f.stat().st_size)
    found = manifest.read(run_dir)
    print({k: found[k] for k in ("hosts", "underlay", "clocks", "nodes", "warnings", "kernel")})
    for host in rack.hosts:
        print(host.left())
    print((run_dir / "proof.json").read_text()[:3000])
    print((run_dir / "raw" / "messages.csv").read_text()[:3000])
    assert outcome.state == "complete"
