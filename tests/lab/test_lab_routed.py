"""Tests a routed lab with each driver of light nodes: routes, paths, links cut and restored; and every kind
of queue, set, read back, replaced by every other and removed.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from lab_running import Control, Running, needs_light, served

from contract.codec import build
from contract.plan import Impairment
from orchestrator import queueing
from orchestrator.kernel.facts import host_facts
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

LINE = """\
name: routed
segments: {west: {subnet: 10.1.0.0/24}, east: {subnet: 10.2.0.0/24}}
nodes:
  client: {segment: west}
  server: {segment: east}
  r1: {segment: west, forward: true}
  r2: {forward: true}
  r3: {segment: east, forward: true}
links:
  near: {between: [r1, r2], both: {rate: 50 Mbit/s, backpressure: true}}
  far: {between: [r2, r3]}
"""
DRIVERS = [
    pytest.param("light", marks=[needs_light, pytest.mark.skipif(
        needs_light.args[0] or host_facts().lacks("tbf") is not None, reason="needs tbf in the kernel")]),
    "fake",
]  # fmt: skip
QUEUES = {
    "netem": Impairment(delay_ns=5_000_000, loss=0.01, loss_correlation=0.1, limit_packets=500),
    "tbf": Impairment(rate_bps=10_000_000, limit_packets=300, backpressure=True),
}


@pytest.fixture(scope="module", params=DRIVERS)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yields a lab that serves; asserts afterwards that nothing of it is left."""
    plan = make_plan(parse("routed.yaml", LINE.encode()))
    with served(plan, tmp_path_factory.mktemp(request.param), request.param) as running:
        yield running


def real(lab: Running) -> bool:
    return bool(json.loads((lab.run_dir / "manifest.json").read_text())["driver"] != "fake")


def inspected(lab: Running) -> dict[str, Any]:
    nodes: dict[str, Any] = Control(lab).call("inspect")["nodes"]
    return nodes


def run(lab: Running, name: str, *argv: str) -> tuple[int, str]:
    control = Control(lab)
    answer, events = control.answer(control.send("exec", node=name, argv=list(argv), env={}, tty=None))
    text = b"".join(base64.b64decode(e["data"]) for e in events if e["event"] == "output")
    return answer["status"], text.decode()


def test_paths_are_proven_in_both_directions(lab: Running) -> None:
    if not real(lab):
        pytest.skip("the fake driver has no packets that could take a way")
    proof = json.loads((lab.run_dir / "proof.json").read_text())
    hops = {j["link"]: (j["verdict"], j["measured"]) for j in proof if j["quantity"] == "hops"}
    assert hops == {"client -> server": ("holds", 4.0), "server -> client": ("holds", 4.0)}


def test_a_cut_link_stops_what_goes_over_it_and_its_routes_come_back(lab: Running) -> None:
    call = Control(lab).call
    ping = ("ping", "-c1", "-W1", "10.2.0.1")
    for down, status in ((True, 1), (False, 0)):
        assert call("link", link="near", **({"down": True} if down else {"up": True}))["ok"]
        assert call("inspect")["links"]["near"]["down"] is down
        if real(lab):
            assert run(lab, "client", *ping)[0] == status
            assert ("10.2.0.0/24 via" in run(lab, "r1", "ip", "route")[1]) is not down


def test_a_router_that_stops_takes_its_links_with_it(lab: Running) -> None:
    call = Control(lab).call
    for action, status in (("stop", 1), ("start", 0)):
        assert call("node", action=action, nodes=["r2"])["ok"]
        if real(lab):
            assert run(lab, "client", "ping", "-c1", "-W1", "10.2.0.1")[0] == status


def test_what_a_larger_mtu_lets_in_passes_the_rate(lab: Running) -> None:
    """Shows that larger frames pass a rate limit after the MTU grew; a token bucket drops frames that are
    larger than the bucket.
    """
    call = Control(lab).call
    assert call("set", nodes=["r1"], mtu=9000)["ok"]
    near = next(c["address"] for c in inspected(lab)["r2"]["interfaces"] if c["segment"] == "near")
    if real(lab):
        assert run(lab, "r1", "ping", "-c1", "-W2", "-Mdo", "-s8900", near)[0] == 0
    assert call("set", nodes=["r1"], mtu=1500)["ok"]


def test_both_ends_of_a_wire_between_nodes_have_its_mtu(lab: Running) -> None:
    call = Control(lab).call
    for mtu in (1400, 1500):
        read = call("set", nodes=["r1"], mtu=mtu)["nodes"]
        ends = {name: {c["segment"]: c["mtu"] for c in n["interfaces"]} for name, n in inspected(lab).items()}
        assert ends["r1"] == {"west": mtu, "near": mtu}
        assert ends["r2"] == {"near": mtu, "far": 1500}
        assert ends["client"] == {"west": 1500} and set(read) == {"r1", "r2"}
        if real(lab):
            interface = next(iter(read["r2"]["mtu"]))
            assert run(lab, "r2", "cat", f"/sys/class/net/{interface}/mtu") == (0, f"{mtu}\n")


@pytest.mark.parametrize(("first", "second"), list(itertools.product(QUEUES, QUEUES)))
def test_every_queue_can_become_every_other(lab: Running, first: str, second: str) -> None:
    if real(lab) and (lacking := [k for k in (first, second) if host_facts().lacks(k)]):
        pytest.skip(f"this machine's kernel has no {lacking[0]}")
    call = Control(lab).call
    for kind in (first, second):
        wanted = QUEUES[kind]
        changes = {f: getattr(wanted, f) for f in wanted.__slots__}
        assert call("link", link="far", forward=changes)["ok"]
        read = build(Impairment, call("inspect")["links"]["far"]["forward"]["read"])
        assert (read.rate_bps, read.delay_ns) == (wanted.rate_bps, wanted.delay_ns)
    assert call("link", link="far", forward={f: getattr(Impairment(), f) for f in Impairment.__slots__})["ok"]
    assert call("inspect")["links"]["far"]["forward"]["read"] is None


def test_every_kind_of_queue_has_its_contract_here() -> None:
    assert QUEUES.keys() == queueing.KINDS.keys()
    assert [getattr(queueing.queue_of(i), "kind", None) for i in QUEUES.values()] == list(QUEUES)
