"""Tests real machines, emulated where KVM does not work: limits, links, snapshots, faults, netem."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from browser import browser, comes
from browser import here as browser_here
from lab_plans import MS, SECOND, access, machine, make_plan, mqtt_plan, node, own, program
from lab_running import Control, Running, needs_vm, until
from playwright.sync_api import expect
from vm_escapes import got_out, is_nobody
from vm_running import Start, qemu_pid, up
from vm_talking import execute

from contract.codec import to_json
from contract.plan import Direction, Impairment, Link, Segment
from orchestrator.lab import cgroup
from orchestrator.plan.bridge_vms import in_bridge_vm
from orchestrator.plan.naming import InterfaceNames
from orchestrator.plan.steps import impair_steps, network_steps
from orchestrator.plan.vms import own_link

pytestmark = [needs_vm, pytest.mark.root, pytest.mark.slow]


def shell_on_the_serial_line(running: Running, name: str) -> None:
    """Shows that Enter opens a root shell on a built-in image's serial line, without the agent."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(running.state_dir / "vm" / name / "console.sock"))
        line.settimeout(60)
        said = b""
        for typed, answer in ((b"\n", b"# "), (b"id -u; echo told $((6 * 7))\n", b"told 42")):
            line.sendall(typed)
            while answer not in said:
                said += line.recv(4096)
        assert b"\r\n0\r\ntold 42" in said, said


def on_the_console(running: Running, control: Control, name: str) -> None:
    """Shows the machine's serial line on the live page: earlier output, new output and typed input."""
    execute(control, name, "sh", "-c", "echo before > /dev/ttyS0")
    log = running.run_dir / "raw" / "logs" / f"{name}.console.log"
    until(60, "what the line said is in its log", lambda: "before" in log.read_text(errors="replace"))
    serve = subprocess.Popen(
        [sys.executable, "-m", "orchestrator.cli.main", "serve", "--port", "0", "--results",
         str(running.run_dir.parent)],
        env={**os.environ, "VNET_STATE_DIR": str(running.state_root)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert serve.stderr is not None
    try:
        with browser() as pages:
            page = pages()
            page.goto(serve.stderr.readline().split()[-1])
            page.get_by_role("link", name=running.plan.lab).click()
            page.locator(f"[role=button][aria-label='node {name}']").press("Enter")
            page.get_by_role("button", name="console", exact=True).click()
            screen = page.locator("#terminal")
            expect(screen.locator(".row span").first).to_have_text(name)  # connected
            comes(screen, "before")
            page.keyboard.type("echo told $((6 * 8))\n")
            comes(screen, "told 48")
    finally:
        serve.send_signal(signal.SIGINT)
        assert serve.wait(60) == 0


def huge_pages(pid: int) -> bool:
    """Returns whether the host may give the process huge pages without a request (proc(5): THP_enabled)."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] == "1" for line in status if line.startswith("THP_enabled:"))


def test_a_machine_is_limited_cut_off_kept_taken_back_and_killed(start: Start) -> None:
    """Tests limits, links, snapshots, the return to a snapshot, and a kill on the same machine, since each
    boot takes seconds.
    """
    lab, light = own("vmops"), node(own("vmops"), 1, "light")
    guest = machine(node(lab, 0, "guest", cpu_limit_cores=0.9))
    link = access(lab, "own", guest, Impairment(), Impairment())
    card, link = own_link(lab, "own", guest.interfaces[0], link, InterfaceNames())
    import dataclasses

    guest = dataclasses.replace(guest, interfaces=(card,))
    running = start(make_plan(lab, (guest, light), (link,), on_node_failure="continue"))
    control = up(running)
    booted = control.call("inspect")["nodes"]["guest"]
    assert booted["state"] == "running" and booted["pid"], (booted, running.events)
    assert booted["limits"]["quota_us"] == 90_000

    # its console
    shell_on_the_serial_line(running, "guest")
    if browser_here():
        on_the_console(running, control, "guest")

    # --- QEMU runs as nobody, so a guest that took QEMU over could not reach the machine
    assert is_nobody(running, qemu_pid(control, "guest"))
    assert got_out(running, qemu_pid(control, "guest")) == []

    # --- memory that an emulated guest frees stays with the host; light nodes are unaffected
    emulated = any(e["event"] == "warning" and e["code"] == "tcg" for e in running.events)
    assert huge_pages(qemu_pid(control, "guest")) != emulated
    assert huge_pages(int(control.call("inspect")["nodes"]["light"]["pid"]))

    # --- CPU: a busy guest gets its limit, counted by its control group
    assert control.call("set", nodes=["guest"], cpu_limit_cores=0.2)["ok"]
    (quota,) = (f.read_text() for f in groups(lab, "cpu.cfs_quota_us", "cpu.max"))
    assert quota.split()[0] == "20000"

    # --- links: up, then down without carrier inside, then up again
    ping = ("ping", "-c", "5", "-i", "0.3", "-W", "3", "10.9.0.1")  # one answer is enough
    assert execute(control, "light", *ping)[0] == 0
    port = card.port
    assert control.call("link", link="own", down=True)["down"]
    assert execute(control, "light", "ping", "-c", "1", "-W", "1", "10.9.0.1")[0] != 0
    assert control.call("link", link="own", up=True)["ok"]
    assert execute(control, "light", *ping)[0] == 0

    # --- names: a light node finds the machine
    assert execute(control, "light", "getent", "hosts", "guest")[1].split() == ["10.9.0.1", "guest"]
    # the machine finds the light node by name
    status, said = execute(control, "guest", "ping", "-c", "1", "light")
    assert status == 0, said

    # --- snapshot and return to it: changes in between are gone, and the agent answers again
    assert control.call("snapshot", nodes=["guest"], name="booted")["ok"]
    assert execute(control, "guest", "touch", "/run/later")[0] == 0
    assert control.call("revert", nodes=["guest"], name="booted")["ok"]
    assert execute(control, "guest", "ls", "/run/later")[0] != 0
    assert execute(control, "light", *ping)[0] == 0
    refused = control.call("revert", nodes=["guest"], name="other")
    assert not refused["ok"] and "has no snapshot other" in refused["error"]
    refused = control.call("snapshot", nodes=["guest"], name="disk")
    assert not refused["ok"] and "the machine's own disk" in refused["error"]
    refused = control.call("snapshot", nodes=["light"], name="booted")
    assert not refused["ok"] and "only virtual machines" in refused["error"]

    # --- QEMU stopped: the machine does not answer, the others do, and it comes back
    pid = qemu_pid(control, "guest")
    os.kill(pid, signal.SIGSTOP)
    assert control.call("inspect")["nodes"]["guest"]["state"].startswith("silent: no answer")
    assert execute(control, "light", "true")[0] == 0
    mute = control.call("exec", node="guest", argv=["true"], env={}, tty=None)
    assert not mute["ok"] and "nodes.guest: exec: it is silent" in mute["error"], mute
    os.kill(pid, signal.SIGCONT)
    until(60, "it answers again", lambda: control.call("inspect")["nodes"]["guest"]["state"] == "running")
    assert execute(control, "guest", "true")[0] == 0

    # --- QEMU killed: the event has the console's last lines, the lab continues, the node boots again
    os.kill(qemu_pid(control, "guest"), signal.SIGKILL)
    running.await_event("exited", node="guest", software="agent")
    running.await_event("warning", code="exited", remedy="see raw/logs/guest.console.log")
    assert any("nodes.guest.agent: ended unexpectedly: QEMU" in str(e.get("text")) for e in running.events)
    state = control.call("inspect")["nodes"]["guest"]["state"]
    assert state.startswith("failed"), (state, running.events)
    gone = control.call("exec", node="guest", argv=["true"], env={}, tty=None)
    assert not gone["ok"] and "vnet start" in gone["error"]
    again = control.call("node", action="restart", nodes=["guest"])
    assert again["ok"], again
    assert execute(control, "guest", "cat", f"/sys/class/net/{card.name}/carrier") == (0, "1\n")
    assert port in json.dumps(control.call("inspect")["nodes"]["guest"]["interfaces"])

    # --- a clone that needs more memory than there is, is refused; the lab stays as it was
    huge = json.loads(to_json(machine(node(lab, 7, "huge"), memory_mib=1 << 22)))
    refused = control.call("add", node=huge, steps=[])
    assert not refused["ok"] and "1 virtual machine(s) need about" in refused["error"]
    assert "huge" not in control.call("inspect")["nodes"]

    # --- power off removes carrier and domain; taking the lab down removes everything
    assert control.call("node", action="stop", nodes=["guest"])["ok"]
    assert control.call("inspect")["nodes"]["guest"]["state"] == "stopped"
    assert control.call("down")["ok"]
    assert running.finish() == 0
    assert running.leftovers() == []
    assert any(w["code"] == "tcg" for w in running.manifest["warnings"]) != Path("/dev/kvm-works").exists()


def groups(lab: str, *names: str) -> list[Path]:
    """Returns the contents of the files of these names in the control groups of the lab's domains."""
    tops = [t / "vnet.partition" / f"{lab}.partition" for t in cgroup.trees()]
    return [f for top in tops for name in names for f in top.glob(f"qemu-*/{name}")]


def test_clients_in_machines_are_accounted_for_in_the_labs_clock(start: Start) -> None:
    """Shows that messages, samples and clocks are right with the broker and a client in a machine and another
    client light, and that nothing is left.
    """
    plan = mqtt_plan(own("vmtalk"), clients=2, hold_ns=4 * SECOND)
    nodes = tuple(machine(n) if n.name != "client1" else n for n in plan.nodes)
    lengths = {"ramp_ns": plan.ramp_ns, "hold_ns": plan.hold_ns}
    owed = {"flows": plan.flows, "receivers": plan.receivers}
    talk = make_plan(own("vmtalk"), nodes, capture=True, **lengths, **owed)
    running = start(talk, "--scenario")
    assert running.finish(300) == 0, (running.events[-3:], running.stderr)
    assert running.leftovers() == []
    raw = running.run_dir / "raw"
    lines = [ln.split(",") for ln in (raw / "messages.csv").read_text().splitlines()]
    sent = {(f[1], f[2]): int(f[5]) for f in lines if f[0] == "S" and f[-1] == "settled"}
    received = {(f[1], f[2]): int(f[5]) for f in lines if f[0] == "R"}
    (since,) = (int(f[3]) for f in lines if f[0] == "C" and f[2] == "subscribed")
    expected = {key for key, at in sent.items() if at > since}
    assert len(expected) > 2 * 20 * 2 and expected <= received.keys()
    clocks = running.manifest["clocks"]
    assert clocks.keys() == {"broker", "client0"}
    error = max(c["error_ns"] for c in clocks.values())
    late = [received[key] - sent[key] for key in expected]
    assert -2 * error <= min(late) and max(late) < 3 * SECOND, "times of two machines on one clock"
    begin, end = running.manifest["phases"]["ramp"][0], running.manifest["phases"]["drain"][1]
    assert all(begin <= t <= end for t in sent.values())
    rows = [ln.split(",") for ln in (raw / "nodes.vm.csv").read_text().splitlines()[1:]]
    of_broker = [r for r in rows if r[1] == "broker"]
    assert int(of_broker[-1][2]) > int(of_broker[0][2]) and int(of_broker[-1][7]) > 30 << 20
    assert int(of_broker[-1][3]) > len(sent) * 717, "what the broker received"
    assert (raw / "logs" / "broker.mosquitto.log").stat().st_size > 0
    assert (raw / "logs" / "broker.console.log").exists()


def test_after_kill_9_of_the_lab_its_machines_are_found_and_nothing_else_is_touched(start: Start) -> None:
    from orchestrator.lab import cleanup

    bystander = subprocess.Popen(
        ["qemu-system-x86_64", "-display", "none", "-S", "-name", f"guest=vnet-{own('vmkill')}.b", "-m", "16"]
    )
    try:
        running = start(make_plan(own("vmkill"), (machine(node(own("vmkill"), 0, "a")),)))
        pid = qemu_pid(up(running), "a")
        running.process.kill()
        running.process.wait()
        assert Path(f"/proc/{pid}").exists(), "a machine outlives its lab's process"
        removed = cleanup.destroy(own("vmkill"), running.state_root)
        assert removed.errors == []
        until(5, "QEMU's end", lambda: not Path(f"/proc/{pid}").exists())
        assert running.leftovers() == []
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"libvirt": "qemu+unix:///system?socket=/nowhere/libvirt-sock"}, "libvirt qemu+unix"),
        ({"libvirt": "nonsense://x"}, "libvirt nonsense://x"),
        ({"image": "missing"}, "nodes.a.image: image missing: not built"),
    ],
)
def test_what_cannot_be_had_is_refused_with_a_remedy_and_leaves_nothing(
    start: Start, change: dict[str, str], said: str
) -> None:
    image = change.pop("image", "builtin")
    running = start(make_plan(own("vmwrong"), (machine(node(own("vmwrong"), 0, "a"), image, 96),), **change))
    assert running.finish() == 1
    text = str(running.manifest["error"])
    assert said in text and (";" in text)
    assert running.leftovers() == []


def test_a_machine_that_does_not_come_up_is_left_out_or_ends_the_run_as_the_file_says(start: Start) -> None:
    """Boots Debian's kernel in 32 MiB, where it panics on its console: the file decides whether the run goes
    on without the machine.
    """
    lab = own("vmpanic")
    for policy, state in (("continue", "complete"), ("abort", "failed")):
        plan = make_plan(
            lab, (machine(node(lab, 0, "a"), memory_mib=32), node(lab, 1, "b")),
            on_node_failure=policy, ramp_ns=100 * MS, hold_ns=100 * MS,
        )  # fmt: skip
        running = start(plan, "--scenario")
        running.finish(300)
        assert running.manifest["state"] == state, running.manifest["error"]
        told = json.dumps(running.manifest["warnings"]) + str(running.manifest["error"])
        assert "its console ends" in told and "nodes.a" in told
        assert running.manifest["nodes"]["a"].startswith("failed")
        assert running.leftovers() == []


def test_a_link_without_netem_in_the_host_runs_through_a_bridge_vm_and_is_proven(start: Start) -> None:
    lab, slow = own("vmbridge"), Impairment(delay_ns=60 * MS, limit_packets=1000)
    core = f"vnet-{lab}"
    plain = Link(
        "wan", "lan", "far", "segments",
        Direction(slow, core, "wan-a", core, "wan-b"), Direction(Impairment(), core, "wan-b", core, "wan-a"),
    )  # fmt: skip
    link, bridge = in_bridge_vm(lab, 0, plain, None, 1500)
    import dataclasses

    segments = (Segment("lan", "br-lan", "10.9.0.0/24", 1500), Segment("far", "br-far", "10.9.0.0/24", 1500))
    b = node(lab, 1, "b")
    b = dataclasses.replace(b, interfaces=(dataclasses.replace(b.interfaces[0], segment="far"),))
    assert bridge.vm is not None
    bridge = dataclasses.replace(bridge, vm=dataclasses.replace(bridge.vm, boot_deadline_ns=240 * SECOND))
    nodes = (node(lab, 0, "a"), b, bridge)
    steps = network_steps(lab, segments, {n.name: n.interfaces for n in nodes}, [link], {bridge.name})
    plan = dataclasses.replace(
        make_plan(lab, nodes[:1]), nodes=nodes, links=(link,), segments=segments,
        steps=steps + impair_steps(lab, [link]),
    )  # fmt: skip
    running = start(plan)
    control = up(running)
    proof = json.loads((running.run_dir / "proof.json").read_text())
    assert {(p["direction"], p["quantity"]) for p in proof} >= {("forward", "delay"), ("reverse", "reach")}
    (delay,) = (p for p in proof if p["quantity"] == "delay")
    assert delay["measured"] > 60 * MS * 0.99, "at least what was asked; a loaded machine adds to it"
    assert all(p["verdict"] == "holds" for p in proof if p["quantity"] == "loss")
    assert control.call("link", link="wan", forward={"delay_ns": 0, "limit_packets": 0})["ok"]
    inside = execute(control, bridge.name, "/sbin/tc", "qdisc", "show", "dev", "eth1")[1]
    assert "netem" not in inside
    assert execute(control, "a", "ping", "-c", "5", "-W", "3", "10.9.0.2")[0] == 0
    assert control.call("link", link="wan", down=True)["ok"]
    assert execute(control, "a", "ping", "-c", "1", "-W", "1", "10.9.0.2")[0] != 0
    assert control.call("down")["ok"] and running.finish() == 0
    assert running.leftovers() == []


def test_programs_in_machines_have_their_logs_and_failures_show_them(start: Start) -> None:
    from contract.plan import Probe

    bad = program("bad", "sh", "-c", "echo the cause; exit 3", ready=Probe(log="never"))
    running = start(make_plan(own("vmlog"), (machine(node(own("vmlog"), 0, "a", (bad,))),)))
    assert running.finish(300) == 1
    assert "the cause" in str(running.manifest["error"])
    assert running.leftovers() == []
