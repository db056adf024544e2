"""Tests labs over several hosts. test_multi_host.py runs this file where hosts are available."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from typing import Any

import pytest
from command_line import CommandLine
from on_hosts import (
    DELAY_MS,
    NETEM,
    begun,
    lines,
    manifest_of,
    over,
    pair,
    rack,
    run_of,
    until,
    vnet,
    with_netem,
)
from rack import Host, Rack

from orchestrator.lab.state import processes

__all__ = ["rack", "vnet"]  # fixtures
TEXT: dict[str, Any] = {"capture_output": True, "text": True, "check": True}


@with_netem
def test_a_run_over_two_hosts_is_whole_and_states_what_lies_between(rack: Rack, vnet: CommandLine) -> None:
    file = over(rack, vnet.cwd, {"left": "h1", "right": "h2"})
    truth = {host.name: host.clock_off_ns() for host in rack.hosts[:2]}
    said = vnet("run", str(file), "-p", "hold=3s", "-p", "delay=60ms", "--raw").stderr
    run, found = run_of(vnet), manifest_of(vnet)
    print(said, "truth", truth, "clocks", found["clocks"], found["underlay"])
    assert found["state"] == "complete"
    judged = json.loads((run / "proof.json").read_text())
    assert {(j["link"], j["quantity"]) for j in judged} >= {
        ("left-access", "delay"),
        ("left-access", "reach"),
    }
    assert {j["verdict"] for j in judged} == {"holds"}
    (delay,) = (j["measured"] for j in judged if j["quantity"] == "delay")
    assert abs(delay - 60e6) < 3e6, "the impairment stands once, and is proven without the underlay"
    sent, received = lines(run, "S"), lines(run, "R")
    assert len(sent) >= 25 and {line[-1] for line in sent} == {"settled"}
    assert sorted(line[2] for line in sent) == sorted(line[2] for line in received)
    (underlay,) = found["underlay"]
    assert 10e6 <= underlay["delay_ns"] < 40e6 and underlay["loss"] < 0.1 and underlay["frame_bytes"] == 1514
    assert underlay["rate_bps"] > 1e6
    for host in ("h1", "h2"):
        clock = found["clocks"][host]
        least, most = truth[host]
        assert least - clock["error_ns"] <= clock["offset_ns"] <= most + clock["error_ns"], truth
        assert found["hosts"][host]["nodes"] == 1
        assert (run / "raw" / f"host.{host}.csv").read_text().count("\n") > 2
    scheduled = {line[2]: int(line[4]) for line in sent}
    latencies = sorted(int(line[5]) - scheduled[line[2]] for line in received)
    middle = latencies[len(latencies) // 2]
    assert abs(middle - 60e6 - underlay["delay_ns"]) < underlay["clock_error_ns"] + 40e6
    assert {w["code"] for w in found["warnings"]} <= {"plan", "clocks", "lateness"}, found["warnings"]
    shown = subprocess.run(["tcpdump", "-ttnr", run / "pcap" / "right.pcap", "tcp"], **TEXT).stdout
    packets = [float(line.split()[0]) for line in shown.splitlines()]
    assert len(packets) > 50
    first = min(int(line[5]) for line in received) / 1e9
    assert min(abs(t - first) for t in packets) < 0.2, "packets are in the lab's time, too"
    assert (run / "raw" / "logs" / "left.ping.log").read_text().count("bytes from") > 5
    assert {"left", "right"} <= {
        line.split(",")[1] for line in (run / "raw" / "nodes.csv").read_text().splitlines()
    }


@with_netem
def test_a_link_that_asks_for_less_than_lies_between_is_marked(rack: Rack, vnet: CommandLine) -> None:
    file = over(rack, vnet.cwd, {"left": "h1", "right": "h2"})
    assert "left-access asks for 2 ms, and h1 - h2 adds" in vnet("up", str(file), "-p", "delay=2ms").stderr
    try:
        assert vnet("exec", "pair", "left", "--", "ping", "-c", "2", "right").stdout.count("bytes from") == 2
        vnet("link", "pair", "left-access", "--delay", "30 ms")
        seen = json.loads(vnet("inspect", "pair", "--json").stdout)
        assert seen["links"]["left-access"]["forward"]["read"]["delay_ns"] == 30_000_000
    finally:
        vnet("down", "pair")
    found = manifest_of(vnet)
    assert found["state"] == "complete"
    assert [w["suspect"] for w in found["warnings"] if w["code"] == "underlay"] == [True]


def test_a_host_dies_and_the_rest_is_kept_and_cleared(rack: Rack, vnet: CommandLine) -> None:
    vnet.more["VNET_SILENCE_S"] = "10"
    file = over(rack, vnet.cwd, {"left": "h1", "right": "h2"})
    running = begun(vnet, file)
    first, second = rack.hosts[:2]
    second.kill()
    try:
        _, said = running.communicate(timeout=600)
        assert running.returncode == 1, said
        assert_the_rest_is_kept(vnet, first)
    finally:
        second.start(DELAY_MS)
    vnet("down", "pair")
    assert vnet.labs() == []


def assert_the_rest_is_kept(vnet: CommandLine, first: Host) -> None:
    found = manifest_of(vnet)
    assert found["state"] == "failed" and "host h2 (1 nodes): not a word for 10 s" in found["error"]
    assert found["nodes"]["right"] == "failed: host h2 is gone"
    assert lines(run_of(vnet), "S"), "what the other host measured"
    assert first.left() == [], "the others are cleared now"
    assert vnet.labs() == ["pair"]
    said = vnet("down", "pair", status=1).stderr
    assert "host h2" in said and "repeat `vnet down pair`" in said


def test_a_host_that_is_cut_off_takes_its_part_away_and_only_that(rack: Rack, vnet: CommandLine) -> None:
    vnet.more["VNET_SILENCE_S"] = "10"
    second = rack.hosts[1]
    subprocess.run(second.inside("ip", "netns", "add", "somebody-elses"), check=True)
    try:
        running = begun(vnet, over(rack, vnet.cwd, {"left": "h1", "right": "h2"}))
        second.cut(there=False)
        until(300, "the part's own end", lambda: second.left() == ["somebody-elses"])
        _, said = running.communicate(timeout=600)
        assert running.returncode == 1 and "not a word for 10 s" in said, said
    finally:
        second.cut(there=True)
        subprocess.run(second.inside("ip", "netns", "del", "somebody-elses"), check=True)
    vnet("down", "pair")


def test_a_lab_that_goes_on_without_a_lost_host_says_so_and_keeps_the_rest(
    rack: Rack, vnet: CommandLine
) -> None:
    vnet.more["VNET_SILENCE_S"] = "5"
    file = over(rack, vnet.cwd, {"left": "h1", "right": "h2"})
    file.write_text(file.read_text().replace("run: {", "run: {on_node_failure: continue, "))
    running = begun(vnet, file, "15s")
    second = rack.hosts[1]
    second.kill()
    try:
        _, said = running.communicate(timeout=600)
        found = manifest_of(vnet)
        assert running.returncode == 0 and found["state"] == "complete", said
        (lost,) = [w for w in found["warnings"] if w["code"] == "host-lost"]
        assert lost["suspect"] and "host h2 is gone, with 1 nodes: not a word for 5 s" in lost["text"]
        assert found["nodes"]["right"] == "failed: host h2 is gone"
        assert rack.hosts[0].left() == [] and vnet.labs() == ["pair"]
    finally:
        second.start(DELAY_MS)
    vnet("down", "pair")


def test_a_lab_over_hosts_is_changed_while_it_runs(rack: Rack, vnet: CommandLine) -> None:
    first, second = rack.hosts[:2]
    vnet("up", str(over(rack, vnet.cwd, {"left": "h1", "right": "h2"})))
    assert "left2" in vnet("add", "pair", "left", "--idle").stderr
    assert any("vnet-pair.left2" in line for line in first.left()), "a clone stands where its model does"
    assert vnet("exec", "pair", "left2", "--", "ping", "-c", "2", "right").stdout.count("bytes from") == 2
    vnet("set", "pair", "left2", "--mtu", "1300")
    assert vnet("exec", "pair", "left2", "--", "cat", "/sys/class/net/eth0/mtu").stdout.split()[-1] == "1300"
    vnet("restart", "pair", "right")
    assert "0% packet loss" in vnet("exec", "pair", "left", "--", "ping", "-c", "2", "right").stdout
    vnet("remove", "pair", "left2")
    assert not any("left2" in line for line in (*first.left(), *second.left()))
    vnet("remove", "pair", "right")
    assert not any("right" in line for line in second.left())
    assert "right2" in vnet("add", "pair", "right", "--idle").stderr
    assert any("vnet-pair.right2" in line for line in second.left()), "in the place of the one that is gone"
    vnet("down", "pair")


def test_hosts_that_reach_each_other_by_ipv6(rack: Rack, vnet: CommandLine) -> None:
    at = {"left": "h1", "right": "h2"}
    said = vnet("up", str(over(rack, vnet.cwd, at, "underlay: {oversize: lower}", six=True))).stderr
    assert "1430" in said, "IPv6's header is longer by 20 bytes"
    try:
        ping = ("ping", "-c", "2", "-M", "do", "-s", "1402", "right")
        assert vnet("exec", "pair", "left", "--", *ping).stdout.count("bytes from") == 2
        shown = subprocess.run(rack.hosts[0].inside("ip", "-n", "vnet-pair", "-d", "link"), **TEXT)
        assert f"remote {rack.hosts[1].address6}" in shown.stdout
    finally:
        vnet("down", "pair")
    (underlay,) = manifest_of(vnet)["underlay"]
    assert underlay["frame_bytes"] == 1444


def test_kill_9_at_home_leaves_nothing_on_any_host(rack: Rack, vnet: CommandLine) -> None:
    running = begun(vnet, over(rack, vnet.cwd, {"left": "h1", "right": "h2"}))
    lab = next(p.pid for p in processes(vnet.state / "pair") if p.role == "lab")
    running.kill()
    os.kill(lab, signal.SIGKILL)
    running.communicate()
    for host in rack.hosts:
        until(300, f"the part's own end on {host.name}", lambda h=host: h.left() == [])  # type: ignore[misc]
    vnet("down", "pair")


def test_a_part_that_is_killed_is_cleared_at_once(rack: Rack, vnet: CommandLine) -> None:
    running = begun(vnet, over(rack, vnet.cwd, {"left": "h1", "right": "h2"}))
    subprocess.run(rack.hosts[0].inside("pkill", "-9", "-f", "multi_host.part"), check=True)
    _, said = running.communicate(timeout=600)
    assert running.returncode == 1 and "host h1 (1 nodes): its part ended" in said, said
    assert lines(run_of(vnet), "R"), "what the other host measured"
    assert rack.hosts[0].left() == [] and vnet.labs() == []


def test_a_name_that_is_taken_on_a_host_is_refused_and_stays(rack: Rack, vnet: CommandLine) -> None:
    second = rack.hosts[1]
    subprocess.run(second.inside("ip", "netns", "add", "vnet-pair.right"), check=True)
    try:
        said = vnet("run", str(over(rack, vnet.cwd, {"left": "h1", "right": "h2"})), "--raw", status=1).stderr
        assert "host h2: " in said and "vnet-pair.right" in said and "name the lab otherwise" in said
        assert "vnet-pair.right" in second.left()
    finally:
        subprocess.run(second.inside("ip", "netns", "del", "vnet-pair.right"), check=True)


def test_a_host_that_is_off_is_refused_before_anything_is_made(rack: Rack, vnet: CommandLine) -> None:
    rack.hosts[1].kill()
    try:
        said = vnet("run", str(over(rack, vnet.cwd, {"left": "h1", "right": "h2"})), "--raw", status=1).stderr
        assert rack.hosts[1].url in said and "nothing answers" in said
        assert not (vnet.cwd / "results").exists()
    finally:
        rack.hosts[1].start(DELAY_MS)


OLD_PYTHON = 'case "$*" in *version_info*) echo 3 9;; *) exit 1;; esac'
OTHER_MACHINE = 'case "$*" in -m) echo riscv64;; *) exec $REAL "$@";; esac'
NO_VXLAN = 'case "$*" in *vxlan*) echo "Error: Unknown device type." >&2; exit 2;; *) exec $REAL "$@";; esac'


@pytest.mark.parametrize(
    ("program", "script", "words"),
    [
        ("uname", OTHER_MACHINE, ("needs the same processor architecture", "that is riscv64")),
        ("python3", OLD_PYTHON, ("needs Python 3.11 or newer", "it has 3.9", "playbooks/host.yml")),
        ("ip", NO_VXLAN, ("vxlan", "Unknown device type", "segment lan is on several hosts")),
    ],
)
def test_a_host_that_cannot_carry_its_part_is_refused_before_anything_is_made(
    rack: Rack, vnet: CommandLine, program: str, script: str, words: tuple[str, ...]
) -> None:
    second = rack.hosts[1]
    where = shutil.which(program, path="/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    assert where is not None
    with second.instead(os.path.realpath(where), script):
        said = vnet("run", str(over(rack, vnet.cwd, {"left": "h1", "right": "h2"})), "--raw", status=4).stderr
    assert second.url in said or "host h2" in said, said
    assert all(word in said for word in words), said
    assert not (vnet.cwd / "results").exists()


MANY = """\
name: pair
hosts:
{hosts}
segments: {{lan: {{subnet: 10.30.0.0/16}}}}
nodes:
  server:
    segment: lan
    software:
      mosquitto: {{broker: mosquitto}}
      all: {{mqtt: {{broker: server, subscribe: [{{topic: "#", qos: 1}}]}}}}
groups:
  meter:
    segment: lan
    count: 199
    software:
      sender: {{mqtt: {{broker: server, publish: {{topic: readings, qos: 1, rate: 20 /s}}}}}}
links:
  far: {{between: [meter, lan], forward: {{delay: 40 ms}}}}
run: {{connect_interval: 50 ms, hold: 20 s, drain: 10 s}}
"""


@with_netem
def test_200_nodes_over_three_hosts(rack: Rack, vnet: CommandLine) -> None:
    hosts = "".join(f"  {h.name}: {{machine: {h.url}, bridge_ports: 70}}\n" for h in rack.hosts)
    file = vnet.cwd / "many.yaml"
    file.write_text(MANY.format(hosts=hosts))
    began = time.monotonic()
    running = vnet.start("run", str(file), "--raw")
    _, said = running.communicate(timeout=1500)
    print(said, f"{time.monotonic() - began:.1f} s")
    assert running.returncode == 0, said
    run, found = run_of(vnet), manifest_of(vnet)
    assert sorted(host["nodes"] for host in found["hosts"].values()) == [62, 69, 69]
    assert {(u["a"], u["b"]) for u in found["underlay"]} == {("h1", "h2"), ("h1", "h3"), ("h2", "h3")}
    judged = json.loads((run / "proof.json").read_text())
    failed = [j for j in judged if j["verdict"] != "holds"]
    print("proofs", len(judged), failed[:3], "clocks", found["clocks"], found["underlay"])
    assert len({j["link"] for j in judged}) == 199 and len(failed) < len(judged) // 20
    sent, received = lines(run, "S"), lines(run, "R")
    print("sent", len(sent), "received", len(received), "settled", sum(s[-1] == "settled" for s in sent))
    assert {line[-1] for line in sent} == {"settled"}
    assert sorted(line[1:3] for line in sent) == sorted(line[1:3] for line in received)


def inventory(rack: Rack, vnet: CommandLine) -> None:
    """Writes an inventory of two hosts where the command finds it."""
    places = "".join(
        f"    lab{h.number}: {{ansible_host: {h.address}, ansible_user: root}}\n" for h in rack.hosts[:2]
    )
    (vnet.cwd / "inventory").mkdir()
    (vnet.cwd / "inventory" / "hosts.yml").write_text(f"lab_hosts:\n  hosts:\n{places}")


def test_the_doctor_looks_at_hosts_from_here_also_where_one_is_off(rack: Rack, vnet: CommandLine) -> None:
    inventory(rack, vnet)
    (found,) = json.loads(vnet("doctor", "--hosts", "lab1", "--json").stdout).values()
    told = {one["subject"]: one for one in found}
    assert told["kernel"]["state"] == "ok" and told["tcpdump"]["state"] == "ok"
    assert told["netem"]["state"] == ("ok" if NETEM else "missing")
    rack.hosts[1].kill()
    try:
        both = json.loads(vnet("doctor", "--hosts", "all", "--json", status=4).stdout)
        assert both["lab1"] and "nothing answers" in both["lab2"][0]["found"]
    finally:
        rack.hosts[1].start(DELAY_MS)


def test_hosts_of_an_inventory_as_the_documentation_has_it(rack: Rack, vnet: CommandLine) -> None:
    """Shows that plan and run use all hosts of an inventory although the topology file names none
    (docs/many-machines.md).
    """
    inventory(rack, vnet)
    file = vnet.cwd / "pair.yaml"
    file.write_text(pair())
    planned = vnet("plan", str(file), "--hosts", "all").stdout
    assert "lab1" in planned and "lab2" in planned
    vnet("run", str(file), "--hosts", "all", "-p", "hold=2s", "--raw")
    found = manifest_of(vnet)
    assert found["state"] == "complete" and set(found["hosts"]) == {"lab1", "lab2"}
    assert vnet.labs() == []
