"""Tests a machine as a router: its links to light nodes, a half-duplex segment, and OSPF."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from lab_plans import own
from lab_running import Control, Running, until, vm_missing
from vm_talking import SERVING, execute

from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

pytestmark = [
    pytest.mark.skipif(vm_missing("builtin-router") is not None, reason=str(vm_missing("builtin-router"))),
    pytest.mark.root,
    pytest.mark.slow,
]
OSPF = "software: {d: {frr: {ospf: {hello: 1 s, dead: 4 s}, ready_within: 250 s}}}"
LAB = f"""\
name: vmroute
routing: none
segments: {{lan: {{subnet: 10.44.0.0/24, duplex: half, medium: {{rate: 2 Mbit/s, backpressure: true}}}}}}
nodes:
  a: {{segment: lan, routes: [{{to: default, via: v}}]}}
  v: {{segment: lan, kind: vm, image: builtin-router, forward: true, boot_within: 240 s, {OSPF}}}
  r: {{forward: true, {OSPF}}}
  b: {{routes: [{{to: default, via: r}}]}}
links:
  near: {{between: [v, r], cost: 5, both: {{rate: 10 Mbit/s, backpressure: true}}}}
  far: {{between: [r, b]}}
"""


def test_a_machine_routes_between_a_shared_medium_and_a_link_of_its_own() -> None:
    plan = make_plan(parse("vmroute.yaml", LAB.encode()), own("vmroute"))
    # The path is short, because QEMU's sockets are deep below it.
    with tempfile.TemporaryDirectory(prefix="vr") as top:
        running = Running(plan, Path(top), driver="vm")
        try:
            route_and_lose_it(running)
            assert running.finish() == 0
            assert running.leftovers() == []
        finally:
            running.close()


def route_and_lose_it(running: Running) -> None:
    running.await_event("phase", timeout=400, text=SERVING)
    control, goal = Control(running), "10.255.0.6"
    proof = json.loads((running.run_dir / "proof.json").read_text())
    assert {(j["link"], j["direction"]) for j in proof if j["quantity"] == "rate"} >= {
        ("lan", "both"), ("near", "forward"), ("near", "reverse")
    }  # fmt: skip
    assert not [j for j in proof if j["quantity"] == "reach" and j["verdict"] != "holds"], proof
    reach = ("ping", "-c", "5", "-i", "0.3", "-W", "3", goal)
    assert execute(control, "a", *reach)[0] == 0, "over the medium, the machine and both links"

    assert control.call("link", link="near", down=True)["down"]
    assert execute(control, "v", "cat", "/sys/class/net/eth1/carrier") == (0, "0\n")
    until(60, "no route", lambda: "10.255.0.4/30" not in execute(control, "v", "ip", "route")[1])
    assert control.call("link", link="near", up=True)["ok"]
    until(60, "the route again", lambda: "10.255.0.4/30" in execute(control, "v", "ip", "route")[1])

    assert control.call("set", nodes=["v"], mtu=1200)["ok"]
    for node, device in (("v", "eth1"), ("r", "eth0")):
        assert execute(control, node, "cat", f"/sys/class/net/{device}/mtu") == (0, "1200\n")
    whole = ("ping", "-c", "5", "-i", "0.3", "-W", "3", "-M", "do", "-s", "1172", "10.255.0.1")
    assert execute(control, "r", *whole)[0] == 0, "so does all that lies between them"

    assert control.call("remove", nodes=["r"])["ok"]
    assert execute(control, "v", "cat", "/sys/class/net/eth1/carrier") == (0, "0\n"), "its wire leads nowhere"
    assert control.call("down")["ok"]
