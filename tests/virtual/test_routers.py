"""Tests routers with routing daemons in virtual time: the example with a failing link, twice."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import pytest
from virtual_place import PROJECT, Place, Ran

sys.path.insert(0, str(PROJECT / "tests/exchange"))
import containerlab_lab
import kathara_lab

EXAMPLE = (PROJECT / "topologies/ring-ospf.yaml").read_bytes()
pytestmark = pytest.mark.skipif(not Path("/usr/lib/frr/zebra").exists(), reason="needs Debian's package frr")
CUT, SILENT = "r2-r3 is cut", "r3-r4 loses everything"


def _run(place: Place, *parameters: str) -> Ran:
    Path(place.cwd / "ring-ospf.yaml").write_bytes(EXAMPLE)
    return place.run("--seed", "3", *parameters, file="ring-ospf.yaml")


def _figures(ran: Ran) -> dict[tuple[str, str], float]:
    rows: list[dict[str, Any]] = json.loads((ran.run_dir / "summary.json").read_text())
    return {
        (r["name"], r["event"]): r["value"] for r in rows if r["traffic_class"] == "stream" and r["event"]
    }


def test_the_stream_goes_on_by_another_way(place: Place) -> None:
    ran = _run(place)
    assert ran.manifest["warnings"] == []
    found = _figures(ran)
    # The loss of carrier is seen at once; silence is noticed after `dead` (4 s), or up to one hello interval
    # earlier.
    assert found["interruption_until", CUT] < 0.5
    assert 2.9 < found["interruption_until", SILENT] < 4.5
    assert found["interruption_lost", SILENT] == pytest.approx(
        100 * found["interruption_until", SILENT], abs=5
    )
    for event in (f"{CUT}: over", f"{SILENT}: over"):
        assert found["interruption_lost", event] < 5


@pytest.mark.sweep
@pytest.mark.slow
def test_the_stream_repeats(places: Callable[[str], Place]) -> None:
    """Shows that a run of the example repeats byte for byte; the next test repeats a smaller lab with the
    same daemons.
    """
    first, second = (_run(places(name)) for name in ("ospf", "ospf-again"))
    assert first.hashes == second.hashes


def test_a_containerlab_topology_finds_its_ways_and_repeats(place: Place) -> None:
    """Imports and runs a topology of containerlab: OSPF of two configurations written for other names and
    addresses.
    """
    done = place.vnet("import", "containerlab", str(containerlab_lab.write(place.cwd)))
    assert done.returncode == 0, done.stderr
    with (place.cwd / "two-routers.yaml").open("a") as file:
        file.write("captures: {far: {at: node pc2, filter: icmp}}\n")
    topology = (place.cwd / "two-routers.yaml").read_text()
    ping = '{ping: {command: "ping -n -c 3 {{ addresses.pc2 }}"}}'
    (place.cwd / "two-routers.yaml").write_text(
        topology.replace("  pc1:\n", f"  pc1:\n    software: {ping}\n")
    )
    ran, again = (place.run(file="two-routers.yaml") for _ in range(2))
    assert ran.hashes == again.hashes
    assert "3 received" in (ran.run_dir / "raw/logs/pc1.ping.log").read_text()
    assert "routes are there" in (ran.run_dir / "raw/logs/r1.router.log").read_text()


def test_a_lab_of_kathara_finds_its_ways(place: Place) -> None:
    """Imports and runs a lab of Kathara: OSPF of Quagga's configurations, addresses of startup scripts, a
    delay by tc.
    """
    done = place.vnet("import", "kathara", str(kathara_lab.write(place.cwd)))
    assert done.returncode == 0, done.stderr
    topology = (place.cwd / "two-routers.yaml").read_text()
    ping = '{ping: {command: "ping -n -c 3 {{ addresses.pc2 }}"}}'
    (place.cwd / "two-routers.yaml").write_text(
        topology.replace("  pc1:\n", f"  pc1:\n    software: {ping}\n").replace("loss: ", "duplicate: ")
    )
    ran = place.run(file="two-routers.yaml")
    said = (ran.run_dir / "raw/logs/pc1.ping.log").read_text()
    assert "3 received" in said and " 0% packet loss" in said
    assert 18 < float(said.split("rtt min/avg/max/mdev = ")[1].split("/")[0]) < 25


@pytest.mark.sweep
@pytest.mark.slow
def test_longer_timers_are_a_longer_interruption(place: Place) -> None:
    """Shows that OSPF waits as long as `dead` of the file says; its default is 40 s."""
    found = _figures(_run(place, "-p", "hello=2s", "-p", "dead=8s"))
    assert 5.9 < found["interruption_until", SILENT] < 8.5


def test_a_graph_of_126_routers_runs_and_its_ways_are_proven(place: Place) -> None:
    """Runs the 12-cage, a graph with many short paths, from GraphML as networkx writes it, and proves its
    routes.
    """
    pattern = [17, 27, -13, -59, -35, 35, -11, 13, -53, 53, -27, 21, 57, 11, -21, -57, 59, -17]
    networkx.write_graphml(networkx.LCF_graph(126, pattern, 7), place.cwd / "cage.graphml")
    done = place.vnet("import", "graphml", "cage.graphml", "-o", "cage.yaml")
    assert done.returncode == 0, done.stderr
    with (place.cwd / "cage.yaml").open("a") as file:
        file.write("run: {hold: 2 s, drain: 1 s}\n")
    ran = place.run(file="cage.yaml")
    proof = json.loads((ran.run_dir / "proof.json").read_text())
    assert {row["verdict"] for row in proof} == {"holds"}
    hops = [row["measured"] for row in proof if row["quantity"] == "hops"]
    assert len(hops) >= 20 and max(hops) <= 6
