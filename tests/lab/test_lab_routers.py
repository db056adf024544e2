"""Tests FRR on light nodes of the machine's own kernel: routes appear, disappear when the daemons end, and
nothing stays.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_running import Control, Running, needs_light, served, until

from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

ZEBRA = Path("/usr/lib/frr/zebra")
OSPF = "{frr: {ospf: {hello: 1 s, dead: 4 s}}}"
TRIANGLE = f"""\
name: routers
routing: none
segments: {{west: {{subnet: 10.1.0.0/24}}, east: {{subnet: 10.2.0.0/24}}}}
nodes:
  client: {{segment: west, routes: [{{to: default, via: a}}]}}
  server: {{segment: east, routes: [{{to: default, via: b}}]}}
  a: {{segment: west, forward: true, software: {{d: {OSPF}}}}}
  b: {{segment: east, forward: true, software: {{d: {OSPF}}}}}
  c: {{forward: true, software: {{d: {OSPF}}}}}
links:
  a-b: {{between: [a, b]}}
  b-c: {{between: [b, c]}}
  c-a: {{between: [c, a]}}
"""
RIP = '{frr: {config: "router rip\\n network 10.0.0.0/8\\n timers basic 5 15 10\\n"}}'
pytestmark = [needs_light, pytest.mark.skipif(not ZEBRA.exists(), reason="needs Debian's package frr")]


def places() -> list[str]:
    """Returns FRR's files on the machine itself with their times, which no lab may change."""
    found = [path for root in ("/run/frr", "/var/tmp/frr", "/etc/frr") for path in Path(root).rglob("*")]
    return sorted(f"{path} {path.stat().st_mtime_ns}" for path in found)


def daemons() -> set[str]:
    """Returns FRR's processes in the lab's control groups; other labs of the machine may have some, too."""
    names = set()
    for process in (path for path in Path("/proc").iterdir() if path.name.isdigit()):
        try:
            if "/vnet/routers/" in (process / "cgroup").read_text():
                names.add(f"{process.name} {(process / 'exe').readlink()}")
        except OSError:
            continue  # a kernel thread, or the process has ended
    return {name for name in names if "/usr/lib/frr/" in name}


SIX = TRIANGLE.replace("10.1.0.0/24", '"fd00:1::/64"').replace("10.2.0.0/24", '"fd00:2::/64"')


@pytest.fixture(params=[TRIANGLE, TRIANGLE.replace(OSPF, RIP), SIX], ids=["ospf", "rip", "ospf-ipv6"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    """Yields a lab that serves; asserts afterwards that none of its daemons runs and none of their files is
    left.
    """
    before = places()
    plan = make_plan(parse("f.yaml", request.param.encode()))
    with served(plan, tmp_path) as running:
        assert daemons()
        yield running
    assert not daemons()
    assert places() == before


def run(lab: Running, name: str, *argv: str) -> tuple[int, str]:
    control = Control(lab)
    answer, events = control.answer(control.send("exec", node=name, argv=list(argv), env={}, tty=None))
    text = b"".join(base64.b64decode(e["data"]) for e in events if e["event"] == "output")
    return answer["status"], text.decode()


def server(lab: Running) -> str:
    """Returns the server's address."""
    address: str = Control(lab).call("inspect")["nodes"]["server"]["interfaces"][0]["address"]
    return address


def way(lab: Running) -> str:
    """Returns the interface through which `a` reaches the server; "" if it has no route."""
    lines = run(lab, "a", "ip", "route", "get", server(lab))[1].split()
    return lines[lines.index("dev") + 1] if "dev" in lines else ""


def test_ready_means_routes_and_they_follow_the_links(lab: Running) -> None:
    ping = ("ping", "-c1", "-W1", server(lab))
    assert run(lab, "client", *ping)[0] == 0
    call = Control(lab).call
    until(60, "the shorter way, which may be told after the longer one", lambda: way(lab) == "eth1")
    assert call("link", link="a-b", down=True)["ok"]
    until(60, "the way over c", lambda: way(lab) == "eth2" and run(lab, "client", *ping)[0] == 0)
    assert call("link", link="a-b", up=True)["ok"]
    until(60, "the way over the link", lambda: way(lab) == "eth1")


def test_routes_go_with_the_daemons_and_come_with_them(lab: Running) -> None:
    call = Control(lab).call
    assert call("software", action="stop", nodes=["a"])["ok"]
    until(10, "no route", lambda: way(lab) == "")
    assert call("software", action="start", nodes=["a"])["ok"]
    assert way(lab) != ""
    assert call("software", action="kill", nodes=["a"])["ok"]
    assert call("software", action="start", nodes=["a"])["ok"]
    # For a short time the neighbours still have the routes of the killed daemon.
    until(20, "the way back", lambda: run(lab, "client", "ping", "-c1", "-W1", server(lab))[0] == 0)
