"""Tests the namespaces, interfaces, samples and proofs of the agent's launcher on the real kernel."""

from __future__ import annotations

import csv
import itertools
import os
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from agent_launcher import BINARY, Launcher, interface, leftovers


def ip(launcher: Launcher, node: str, *words: str) -> str:
    run = ["ip", "-n", launcher.netns(node), *words]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout


def narrow(launcher: Launcher, device: str, *room: str) -> None:
    """Limits a port of the core namespace to 1 Mbit/s in the outgoing direction."""
    words = ["tc", "-n", launcher.core, "qdisc", "add", "dev", device, "root", "tbf", "rate", "1mbit", *room]
    subprocess.run(words, check=True)


def test_version_and_usage() -> None:
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    out = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout
    assert out.startswith("vnet-agent ")
    wrong = subprocess.run([BINARY, "launch"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "usage" in wrong.stderr


def test_interfaces_are_what_was_asked_for(launcher: Launcher) -> None:
    launcher.create(["a", "b"])
    answer = launcher.wire(["a", "b"])
    got = answer["nodes"]["b"]
    assert got["hostname"] == "b"
    asked = interface(1)
    assert {k: got["interfaces"][0][k] for k in asked} == asked
    assert got["interfaces"][0]["up"] is True
    off = {"tso": False, "gso": False, "gro": False, "multi_segment": False}
    assert got["interfaces"][0]["offloads"] == off and answer["core_devices"]["p0"] == off
    assert "gso_max_segs 1 " in ip(launcher, "b", "-d", "link", "show", "eth0")
    shown = ip(launcher, "b", "addr", "show")
    assert "10.77.0.2/16 brd 10.77.255.255" in shown and asked["mac"] in shown
    assert "inet6" not in shown
    assert "state UP" in ip(launcher, "b", "link", "show", "eth0") and "127.0.0.1/8" in shown
    ping = ["ip", "netns", "exec", launcher.netns("a"), "ping", "-c1", "-W2", "10.77.0.2"]
    if subprocess.run(["which", "ping"], capture_output=True).returncode == 0:
        subprocess.run(ping, check=True, capture_output=True)


def test_set_reads_back(launcher: Launcher) -> None:
    launcher.lab_up(["a"])
    answer = launcher.do("set", node="a", mtu={"eth0": 1280}, hostname="other")
    assert answer["mtu"] == {"eth0": 1280} and answer["hostname"] == "other"
    assert "mtu 1280" in ip(launcher, "a", "link", "show", "eth0")


def test_a_missing_interface_fails_with_its_name(launcher: Launcher) -> None:
    launcher.create(["a"])
    answer = launcher.ask("configure", nodes=[{"name": "a", "interfaces": [interface(0)]}])
    assert not answer["ok"] and "node a" in answer["error"] and "eth0" in answer["error"]


def test_a_name_in_use_is_refused_and_nothing_is_left(launcher: Launcher) -> None:
    launcher.create(["a"])
    nodes: list[dict[str, Any]] = [
        {"name": n, "netns": launcher.netns(n), "hostname": n, "cgroup_procs": [], "ipv6": False}
        for n in ("b", "a")
    ]
    answer = launcher.ask("create", core=None, nodes=nodes)
    assert not answer["ok"] and "exists" in answer["error"]
    assert launcher.netns("b") not in leftovers(launcher.lab)
    assert launcher.netns("a") in leftovers(launcher.lab)


def test_a_failing_cgroup_unwinds(launcher: Launcher) -> None:
    bad = "/proc/no/such/cgroup.procs"
    nodes = [
        {"name": "a", "netns": launcher.netns("a"), "hostname": "a", "cgroup_procs": [bad], "ipv6": False}
    ]
    answer = launcher.ask("create", core=launcher.core, nodes=nodes)
    assert not answer["ok"] and bad in answer["error"]
    assert leftovers(launcher.lab) == []


def test_single_nodes_come_and_go(launcher: Launcher) -> None:
    pids = launcher.create(["a", "b"])
    launcher.do("destroy", nodes=["a"])
    assert not Path(f"/proc/{pids['a']}").exists() and Path(f"/proc/{pids['b']}").exists()
    assert leftovers(launcher.lab).count(launcher.netns("a")) == 0
    again = launcher.create(["a"])
    assert again["a"] != pids["a"]
    # A node that is created later must not keep the namespaces of removed nodes alive.
    mounts = Path(f"/proc/{again['a']}/mounts").read_text()
    assert "vnet-" not in mounts


def test_it_survives_the_clients_disconnect(launcher: Launcher) -> None:
    launcher.create(["a"])
    launcher.socket.close()
    launcher.lines.close()
    launcher.connect()
    launcher.number += 100
    assert launcher.do("software")["nodes"] == {"a": {}}


def test_nodes_die_with_the_launcher(launcher: Launcher) -> None:
    pids = launcher.create(["a", "b"])
    sleeper = launcher.do(
        "start",
        node="a",
        software={"name": "s", "role": "utility", "process": {"argv": ["sleep", "1000"]}},
    )["pid"]
    launcher.process.kill()
    launcher.process.wait()
    deadline = time.monotonic() + 5
    everyone = [*pids.values(), sleeper]
    while time.monotonic() < deadline and any(Path(f"/proc/{p}").exists() for p in everyone):
        time.sleep(0.02)
    assert not any(Path(f"/proc/{p}").exists() for p in everyone)
    for name in leftovers(launcher.lab):  # `vnet down` does this after a kill -9
        subprocess.run(["ip", "netns", "del", name], check=True)
    nodes = launcher.directory / "nodes"
    (nodes / "a").rmdir()
    nodes.rmdir()


def test_counters_are_as_seen_from_the_node(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b"])
    nodes: list[dict[str, Any]] = [
        {"node": n, "cpu": [], "memory": None, "ports": [f"p{i}"]} for i, n in enumerate("ab")
    ]
    links = [{"link": "l", "direction": "forward", "netns": launcher.core, "device": "p0"}]
    narrow(launcher, "p0", "burst", "20k", "limit", "30k")
    launcher.do("sample", interval_ns=100_000_000, dir=str(launcher.directory), nodes=nodes, links=links)
    time.sleep(0.15)
    # Node b sends a 40 datagrams of 1,042 bytes on the wire; the queue has room for 50 KB, so none is lost.
    code = "import socket; s=socket.socket(2,2); [s.sendto(b'x'*1000,('10.77.0.1',9)) for _ in range(40)]"
    done = launcher.do("exec", node="b", argv=["python3", "-c", code], env={}, tty=None)
    assert done["status"] == 0
    time.sleep(0.8)
    rows = list(csv.DictReader((launcher.directory / "nodes.csv").open()))
    last = {n: [r for r in rows if r["node"] == n][-1] for n in "ab"}
    assert int(last["b"]["tx_bytes"]) >= 40 * 1042 > int(last["b"]["rx_bytes"])
    assert int(last["a"]["rx_packets"]) >= 40 > int(last["a"]["tx_packets"])
    links_rows = list(csv.DictReader((launcher.directory / "links.csv").open()))
    assert int(links_rows[-1]["bytes"]) >= 40 * 1042
    assert max(int(r["backlog_packets"]) for r in links_rows) > 0
    times = sorted({int(r["t_ns"]) for r in rows})
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert len(times) >= 8 and abs(sum(gaps) / len(gaps) - 1e8) < 1e7
    host = list(csv.DictReader((launcher.directory / "host.csv").open()))
    assert int(host[-1]["cores"]) == len(os.sched_getaffinity(0)) and int(host[-1]["idle_ns"]) > 0


def test_a_node_on_two_segments_counts_both(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b", "c"])
    b, core = launcher.netns("b"), launcher.core
    second = [
        "link add br1 type bridge forward_delay 0", "link set br1 up",
        f"link add q0 type veth peer name eth1 netns {launcher.netns('c')}",
        f"link add q1 type veth peer name eth1 netns {b}",
        "link set q0 master br1 up", "link set q1 master br1 up",
    ]  # fmt: skip
    subprocess.run(["ip", "-n", core, "-batch", "-"], input="\n".join(second), text=True, check=True)
    for netns, address in ((launcher.netns("c"), "10.78.0.3/24"), (b, "10.78.0.2/24")):
        subprocess.run(["ip", "-n", netns, "addr", "add", address, "dev", "eth1"], check=True)
        subprocess.run(["ip", "-n", netns, "link", "set", "eth1", "up"], check=True)
    launcher.wait_for_ports()
    nodes = [
        {"node": "b", "cpu": [], "memory": None, "ports": ["p1", "q1"]},
        {"node": "c", "cpu": [], "memory": None, "ports": ["p2"]},
        {"node": "none", "cpu": [], "memory": None, "ports": []},
    ]
    launcher.do("sample", interval_ns=100_000_000, dir=str(launcher.directory), nodes=nodes, links=[])
    for node, address in (("a", "10.77.0.2"), ("c", "10.78.0.2")):
        code = (
            f"import socket; s=socket.socket(2,2); [s.sendto(b'x'*1000,('{address}',9)) for _ in range(20)]"
        )
        assert launcher.do("exec", node=node, argv=["python3", "-c", code], env={}, tty=None)["status"] == 0
    time.sleep(0.5)
    rows = list(csv.DictReader((launcher.directory / "nodes.csv").open()))
    last = {row["node"]: row for row in rows}
    assert len(rows) == 3 * len({row["t_ns"] for row in rows}), "one row a node and sample"
    assert int(last["b"]["rx_bytes"]) >= 40 * 1042
    assert int(last["c"]["tx_bytes"]) < 20 * 1042, "its own second interface was not asked for"
    assert set(list(last["none"].values())[2:]) == {"0"}


def test_wires_between_nodes_count_at_both(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b"])
    a, b = launcher.netns("a"), launcher.netns("b")
    wire = f"link add eth1 netns {a} type veth peer name eth1 netns {b}"
    subprocess.run(["ip", "-batch", "-"], input=wire, text=True, check=True)
    for netns, address in ((a, "10.78.0.1/24"), (b, "10.78.0.2/24")):
        subprocess.run(["ip", "-n", netns, "addr", "add", address, "dev", "eth1"], check=True)
        subprocess.run(["ip", "-n", netns, "link", "set", "eth1", "up"], check=True)
    nodes = [
        {"node": "a", "cpu": [], "memory": None, "ports": [], "own": ["eth1"], "netns": a},
        {"node": "b", "cpu": [], "memory": None, "ports": ["p1"], "own": ["eth1", "gone"], "netns": b},
    ]
    links = [{"link": "l", "direction": "forward", "netns": a, "device": "eth1"}]
    launcher.do("sample", interval_ns=100_000_000, dir=str(launcher.directory), nodes=nodes, links=links)
    for address in ("10.78.0.2", "10.77.0.2"):  # 20 datagrams over the link, 20 over the segment
        code = (
            f"import socket; s=socket.socket(2,2); [s.sendto(b'x'*1000,('{address}',9)) for _ in range(20)]"
        )
        assert launcher.do("exec", node="a", argv=["python3", "-c", code], env={}, tty=None)["status"] == 0
    time.sleep(0.5)
    rows = list(csv.DictReader((launcher.directory / "nodes.csv").open()))
    last = {row["node"]: row for row in rows}
    link = list(csv.DictReader((launcher.directory / "links.csv").open()))[-1]
    assert 20 * 1042 <= int(last["a"]["tx_bytes"]) == int(link["bytes"]) < 40 * 1042
    assert int(last["b"]["rx_bytes"]) >= 40 * 1042 > int(last["b"]["tx_bytes"])


def probe(
    launcher: Launcher, direction: str, near: tuple[str, str], far: tuple[str, str], **more: int
) -> dict[str, object]:
    return {
        "link": "l", "direction": direction, "netns": near[0], "device": near[1],
        "far_netns": far[0], "far_device": far[1],
        "count": 50, "size": 200, "interval_ns": 2_000_000, "timeout_ns": 500_000_000,
    } | more  # fmt: skip


def test_frames_prove_a_link_in_both_directions(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b"])
    node, port = (launcher.netns("a"), "eth0"), (launcher.core, "p0")
    other, other_port = (launcher.netns("b"), "eth0"), (launcher.core, "p1")
    # The test sends 100 frames of 1,000 bytes at once over a link of 1 Mbit/s whose queue holds 10: most are
    # lost, the others arrive late.
    narrow(launcher, "p1", "burst", "2k", "limit", "10k")
    probes = [
        probe(launcher, "forward", node, port),
        probe(launcher, "reverse", port, node),
        probe(launcher, "reverse", other_port, other, count=100, size=1000, interval_ns=0),
    ]
    forward, reverse, slow = launcher.do("prove", probes=probes)["probes"]
    for plain in (forward, reverse):
        assert (plain["sent"], plain["received"]) == (50, 50)
        assert (plain["duplicates"], plain["reordered"], plain["corrupted"]) == (0, 0, 0)
        assert len(plain["delays_ns"]) == 50 and all(0 <= d < 100_000_000 for d in plain["delays_ns"])
    assert slow["sent"] == 100 and 8 <= slow["received"] <= 20
    # One frame takes 8 ms at 1 Mbit/s.
    arrivals = slow["arrivals_ns"][3:]
    gaps = [b - a for a, b in itertools.pairwise(arrivals)]
    assert 7.5e6 < statistics.median(gaps) < 9e6, gaps
    assert slow["delays_ns"][-1] > 40_000_000


def test_frames_do_not_cross_the_bridge(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b"])
    wrong = probe(
        launcher,
        "forward",
        (launcher.netns("a"), "eth0"),
        (launcher.netns("b"), "eth0"),
        timeout_ns=50_000_000,
    )
    (seen,) = launcher.do("prove", probes=[wrong])["probes"]
    assert (seen["sent"], seen["received"]) == (50, 0)


def test_unknown_operations_are_refused(launcher: Launcher) -> None:
    answer = launcher.ask("dance")
    assert not answer["ok"] and '"dance"' in answer["error"]
