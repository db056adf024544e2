"""Tests real labs on the host kernel: a run with mosquitto, faults of every kind, and teardown after kill
-9.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab_plans import MS, SECOND, make_plan, mqtt_plan, node, own, program
from lab_running import Control, Running, needs_light, served

from contract.plan import Event, Plan, Probe
from orchestrator.lab import cleanup, namespaces
from orchestrator.lab.cgroup import remove_tree, this_machine

pytestmark = [needs_light, pytest.mark.root]
Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    made: list[Running] = []

    def run(plan: Plan, *options: str) -> Running:
        directory = tmp_path / str(len(made))  # a short path, because it contains a socket
        directory.mkdir()
        made.append(Running(plan, directory, *options))
        return made[-1]

    yield run
    for running in made:
        running.close()


def failed(running: Running) -> str:
    """Returns the error of a run, after asserting that the run failed and left nothing."""
    assert running.finish() == 1, running.events[-3:]
    assert running.leftovers() == []
    assert running.manifest["state"] == "failed"
    text = str(running.manifest["error"])
    assert any(e["event"] == "error" and e["text"] == text for e in running.events)
    return text


def unmount(disk: Path, patience_s: float = 20) -> None:
    """Unmounts the directory; retries, since a killed node may close its log after the lab's last event."""
    deadline = time.monotonic() + patience_s
    while subprocess.run(["umount", str(disk)], capture_output=True).returncode:
        assert time.monotonic() < deadline, f"{disk}: somebody still writes there"
        time.sleep(0.05)


def test_clients_talk_through_mosquitto_and_every_message_is_accounted_for(start: Start) -> None:
    running = start(mqtt_plan(own("talk"), clients=4, hold_ns=2 * SECOND), "--scenario")
    assert running.finish() == 0, (running.events[-3:], running.stderr)
    assert running.leftovers() == []
    lines = [ln.split(",") for ln in (running.run_dir / "raw" / "messages.csv").read_text().splitlines()]
    sent = {(f[1], f[2]) for f in lines if f[0] == "S" and f[-1] == "settled"}
    received = {(f[1], f[2]) for f in lines if f[0] == "R"}
    assert len(sent) > 4 * 20 * 1.5 and sent == received
    capture = running.manifest["captures"]["point"]
    assert capture["packets"] > 2 * len(sent) and capture["dropped_kernel"] == 0
    assert (running.run_dir / "pcap" / "point.pcap").read_bytes()[:4] == bytes.fromhex("4d3cb2a1"), (
        "nanoseconds"
    )
    for name in ("nodes", "links", "host"):
        assert (running.run_dir / "raw" / f"{name}.csv").exists()
    assert "mosquitto version" in (running.run_dir / "raw" / "logs" / "broker.mosquitto.log").read_text()


def test_an_outage_in_the_timeline_is_applied(start: Start) -> None:
    events = (
        Event("hold", 100 * MS, "restart", ("broker",), {"software": "mosquitto"}),
        Event("hold", 900 * MS, "stop", ("client1",), {"software": None}),
        Event("hold", 1200 * MS, "start", ("client1",), {"software": None}),
    )
    running = start(mqtt_plan(own("outage"), hold_ns=2 * SECOND, events=events), "--scenario")
    assert running.finish() == 0, (running.events[-3:], running.stderr)
    records = (running.run_dir / "raw" / "events.jsonl").read_text().splitlines()
    assert [json.loads(r)["ok"] for r in records] == [True] * 3
    log = (running.run_dir / "raw" / "logs" / "broker.mosquitto.log").read_text()
    assert log.count("terminating") == 2, "once in the timeline, once at the end"


def test_a_broker_that_dies_ends_the_run_with_its_last_words(start: Start) -> None:
    running = start(mqtt_plan(own("dies"), hold_ns=20 * SECOND), "--scenario")
    running.await_event("phase", phase="hold")
    control = Control(running)
    pid = control.call("inspect")["nodes"]["broker"]["software"]["mosquitto"]["pid"]
    assert control.call("exec", node="broker", argv=["kill", "-9", str(pid)], env={}, tty=None)["ok"]
    assert "nodes.broker.mosquitto: ended unexpectedly with status" in failed(running)
    assert (running.run_dir / "raw" / "messages.csv").read_text().count("\nS,") > 0, (
        "what was measured is kept"
    )
    assert running.manifest["captures"]["point"]["packets"] > 0


def test_a_launcher_that_dies_ends_the_run(start: Start) -> None:
    running = start(mqtt_plan(own("headless"), hold_ns=20 * SECOND), "--scenario")
    running.await_event("phase", phase="hold")
    processes = json.loads((running.state_dir / "lab.json").read_text())["processes"]
    os.kill(next(p["pid"] for p in processes if p["role"] == "launcher"), signal.SIGKILL)
    assert "launcher: died" in failed(running)


def test_a_capture_that_dies_ends_the_run(start: Start) -> None:
    running = start(mqtt_plan(own("blind"), hold_ns=20 * SECOND), "--scenario")
    running.await_event("phase", phase="hold")
    processes = json.loads((running.state_dir / "lab.json").read_text())["processes"]
    os.kill(next(p["pid"] for p in processes if p["role"] == "capture point"), signal.SIGKILL)
    assert "captures.point: tcpdump ended early" in failed(running)


def test_an_interrupted_run_keeps_what_was_measured(start: Start) -> None:
    running = start(mqtt_plan(own("stopped"), hold_ns=20 * SECOND), "--scenario")
    running.await_event("phase", phase="hold")
    running.process.send_signal(signal.SIGINT)
    assert running.finish() == 130
    assert running.leftovers() == []
    assert running.manifest["state"] == "interrupted"
    assert running.manifest["captures"]["point"]["packets"] > 0
    assert (running.run_dir / "raw" / "messages.csv").stat().st_size > 0


def test_a_program_that_does_not_start_shows_its_log(start: Start) -> None:
    bad = program(
        "bad", "sh", "-c", "echo the reason why; exit 3", ready=Probe(tcp_port=9, deadline_ns=SECOND)
    )
    text = failed(start(make_plan(own("bad"), (node(own("bad"), 0, "alpha", (bad,)),)), "--scenario"))
    assert "nodes.alpha.bad" in text and "the reason why" in text


def test_the_run_goes_on_without_a_failed_node_where_the_file_says_so(start: Start) -> None:
    bad = program("bad", "sh", "-c", "exit 3", ready=Probe(tcp_port=9, deadline_ns=SECOND))
    plan = make_plan(
        own("goon"),
        (node(own("goon"), 0, "alpha", (bad,)), node(own("goon"), 1, "beta")),
        on_node_failure="continue",
    )
    running = start(plan, "--scenario")
    assert running.finish() == 0, running.events[-3:]
    assert running.manifest["nodes"] == {"alpha": "failed: bad", "beta": "running"}
    assert [w["code"] for w in running.manifest["warnings"]] == ["node-failed"] and running.manifest[
        "suspect"
    ]


def test_a_missing_agent_is_a_clear_error(start: Start, tmp_path: Path) -> None:
    directory = tmp_path / "noagent"
    directory.mkdir()
    running = start(
        make_plan(own("noagent"), (node(own("noagent"), 0, "alpha"),)),
        "--scenario",
        "--agent",
        "/nonexistent",
    )
    assert failed(running) == "agent /nonexistent: No such file or directory; build or install it again"


def test_a_capture_that_cannot_begin_ends_the_run_before_its_load(start: Start) -> None:
    """Shows that a capture that cannot begin ends the run before its load."""
    plan = mqtt_plan(own("wrongfilter"), hold_ns=20 * SECOND)
    wrong = tuple(dataclasses.replace(c, filter="tcpp porrt 99") for c in plan.captures)
    said = failed(start(dataclasses.replace(plan, captures=wrong), "--scenario"))
    assert (
        said == "captures.point: tcpdump ended at once: tcpdump: can't parse filter expression: syntax error"
    )


def test_a_full_disk_ends_the_run_and_keeps_the_manifest(start: Start, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "vnet-test", str(disk)], check=True)
    try:
        running = start(
            mqtt_plan(own("full"), hold_ns=20 * SECOND), "--scenario", "--run-dir", str(disk / "run")
        )
        running.run_dir = disk / "run"
        running.await_event("phase", phase="hold")
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        (disk / "ballast").write_bytes(b"\0" * (free - (1 << 19)))
        assert "disk is full" in failed(running)
        assert (disk / "run" / "pcap" / "point.pcap").stat().st_size > 0
    finally:
        unmount(disk)


def test_limits_are_applied_and_changed_live(start: Start) -> None:
    if "cpu" not in this_machine().mounts:
        pytest.skip("this kernel has no cpu controller for control groups")
    nodes = (
        node(own("limits"), 0, "alpha", cpu_limit_cores=0.25, memory_limit_bytes=64 << 20),
        node(own("limits"), 1, "beta"),
    )
    running = start(make_plan(own("limits"), nodes))
    running.await_event("phase", text="serving until `vnet down`")
    control = Control(running)
    limits = control.call("inspect")["nodes"]["alpha"]["limits"]
    assert limits["cpu_cores"] == 0.25 and limits["memory_bytes"] == 64 << 20
    read = control.call("set", nodes=["beta"], cpu_limit_cores=0.1)["nodes"]["beta"]["limits"]
    assert read["cpu_cores"] == 0.1
    answer, _ = control.answer(control.send("exec", node="beta", argv=BURN, env={}, tty=None))
    assert answer["ok"]
    usage = cpu_seconds(own("limits"), "beta")
    assert usage < 0.35, "one second of burning at a tenth of a core"
    reserved = control.call("set", nodes=["alpha"], cpu_reserve_cores=0.5)["nodes"]
    assert reserved["alpha"]["limits"]["weight"] > 0
    over = control.call("set", nodes=["alpha"], cpu_reserve_cores=10_000)
    assert not over["ok"] and "reserve less" in over["error"]
    after = control.call("set", nodes=["beta"], cpu_limit_cores=0.2)
    assert after["ok"], "what was refused is not asked for again"
    limits = control.call("inspect")["nodes"]["alpha"]["limits"]
    assert limits["cpu_cores"] == 0.25 and limits["memory_bytes"] == 64 << 20 and limits["weight"] > 0
    assert control.call("down")["ok"] and running.finish() == 0
    assert running.leftovers() == []


BURN = ["timeout", "1", "sh", "-c", "while :; do :; done"]


def cpu_seconds(lab: str, name: str) -> float:
    """Returns the CPU time of a node's group so far."""
    layout = this_machine()
    top = layout.mounts["cpuacct"] / "vnet" / lab / name
    if layout.version == 1:
        return int((top / "cpuacct.usage").read_text()) / 1e9
    return int((top / "cpu.stat").read_text().split()[1]) / 1e6


@pytest.mark.parametrize("seed", range(6))
def test_after_kill_9_at_any_moment_destroy_leaves_nothing_and_touches_nothing_else(
    start: Start, seed: int
) -> None:
    lab = own(f"kill{seed}")
    bystander = f"vnet-{lab}x"  # this namespace belongs to a lab with a longer name
    subprocess.run(["ip", "netns", "add", bystander], check=True)
    subprocess.run(["ip", "-n", bystander, "link", "set", "lo", "alias", namespaces.MARK], check=True)
    process = subprocess.Popen(["ip", "netns", "exec", bystander, "sleep", "60"])
    groups = [root / "vnet" / f"{lab}x" / "a" for root in this_machine().roots(("cpuacct", "memory"))]
    for group in groups:
        group.mkdir(parents=True)
    try:
        running = start(mqtt_plan(lab, clients=12, hold_ns=20 * SECOND), "--scenario")
        time.sleep(random.Random(seed).uniform(0.02, 2.5))
        running.process.kill()
        running.process.wait()
        if seed % 2:  # otherwise the launcher ends when its client ends; cleanup must work in both cases
            kill_launcher(running)
        removed = cleanup.destroy(lab, running.state_root)
        assert removed.errors == []
        assert cleanup.leftovers(lab, running.state_root) == []
        assert cleanup.destroy(lab, running.state_root).nothing, "a second time finds nothing"
        assert process.poll() is None and Path("/run/netns", bystander).exists()
        assert all(group.is_dir() for group in groups)
        assert f"{lab}x" in cleanup.labs(running.state_root) and lab not in cleanup.labs(running.state_root)
    finally:
        process.kill()
        process.wait()
        subprocess.run(["ip", "netns", "del", bystander], check=True)
        for group in groups:
            remove_tree(group.parent)


def kill_launcher(running: Running) -> None:
    file = running.state_dir / "lab.json"
    for process in json.loads(file.read_text())["processes"] if file.exists() else []:
        if process["role"] == "launcher":
            os.kill(process["pid"], signal.SIGKILL)


def test_a_name_with_leftovers_is_refused_until_they_are_taken_away(start: Start) -> None:
    plan = mqtt_plan(own("again"), hold_ns=20 * SECOND)
    first = start(plan, "--scenario")
    first.await_event("ready")
    first.process.kill()
    first.process.wait()
    kill_launcher(first)
    second = start(plan, "--scenario")
    assert second.finish() == 1
    assert f"run `vnet down {own('again')}`" in next(
        e["text"] for e in second.events if e["event"] == "error"
    )
    cleanup.destroy(plan.lab, first.state_root)
    third = start(mqtt_plan(own("again"), hold_ns=SECOND), "--scenario")
    assert third.finish() == 0, third.events[-3:]


def test_a_recorded_pid_that_is_somebody_else_is_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        state = tmp_path / "mistaken"
        state.mkdir()
        record = {"role": "launcher", "pid": other.pid, "start_ticks": 1}
        (state / "lab.json").write_text(json.dumps({"lab": "mistaken", "processes": [record]}))
        removed = cleanup.destroy("mistaken", tmp_path)
        assert removed.processes == [] and removed.directories == [str(state)]
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_of_250_nodes_nothing_stays(tmp_path: Path) -> None:
    nodes = tuple(node(own("many"), n % 250, f"n{n}") for n in range(250))
    with served(make_plan(own("many"), nodes), tmp_path):
        pass


def test_a_group_is_removed_with_what_still_runs_in_it() -> None:
    roots = this_machine().roots(("cpuacct", "memory"))
    if not roots:
        pytest.skip("this kernel has no control groups")
    top = roots[0] / "vnet" / own("full-group")
    (top / "alpha").mkdir(parents=True)
    process = subprocess.Popen(["sleep", "60"])
    (top / "alpha" / "cgroup.procs").write_text(str(process.pid))
    try:
        remove_tree(top)
        assert not top.exists()
        assert process.wait(5) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()


def test_bridged_frames_bypass_netfilter_in_the_lab_and_nowhere_else() -> None:
    if not Path("/proc/sys/net/bridge").is_dir():
        pytest.skip("br_netfilter is not loaded")
    subprocess.run(["ip", "netns", "add", own("vnet-filtered")], check=True)
    outside = Path("/proc/sys/net/bridge/bridge-nf-call-iptables").read_text()
    inside = ["ip", "netns", "exec", own("vnet-filtered"), "sh", "-c"]
    try:
        one = "echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables"
        subprocess.run([*inside, one], check=True)
        assert namespaces.bypass_netfilter(own("vnet-filtered")) == {
            "iptables": 0,
            "ip6tables": 0,
            "arptables": 0,
        }
        read = subprocess.run([*inside, "cat /proc/sys/net/bridge/bridge-nf-call-*"], capture_output=True)
        assert read.stdout.split() == [b"0"] * 3
        assert Path("/proc/sys/net/bridge/bridge-nf-call-iptables").read_text() == outside
    finally:
        subprocess.run(["ip", "netns", "del", own("vnet-filtered")], check=True)
