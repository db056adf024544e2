"""Tests machines that a libvirt daemon runs: the daemon's other domains stay, and the daemon may be
killed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_plans import machine, make_plan, node, own
from lab_running import needs_vm, until
from vm_escapes import is_nobody
from vm_running import Daemon, Start, qemu_pid, up
from vm_talking import execute

pytestmark = [needs_vm, pytest.mark.root, pytest.mark.slow]


def test_a_daemon_of_the_machine_runs_the_nodes_and_keeps_its_other_domains(
    start: Start, daemon: Daemon
) -> None:
    import libvirt  # type: ignore[import-untyped]

    ours, theirs = f"vnet-{own('vmdaemon')}.a", f"vnet-{own('vmdaemon')}.x"
    other = f"<domain type='qemu'><name>{theirs}</name><memory>16384</memory>"
    other += "<os><type>hvm</type></os></domain>"
    connection = libvirt.open(daemon.uri)
    connection.createXML(other, libvirt.VIR_DOMAIN_START_PAUSED)
    nodes = (machine(node(own("vmdaemon"), 0, "a")), node(own("vmdaemon"), 1, "b"))
    running = start(make_plan(own("vmdaemon"), nodes, libvirt=daemon.uri), state_root=daemon.states)
    control = up(running)
    assert execute(control, "b", "ping", "-c", "5", "-W", "3", "10.9.0.1")[0] == 0
    assert is_nobody(running, qemu_pid(control, "a"))
    assert {d.name() for d in connection.listAllDomains()} == {ours, theirs}
    for op in ("snapshot", "revert"):  # each operation gives the machine's tap device to the daemon once more
        assert (answer := control.call(op, nodes=["a"], name="booted"))["ok"], answer
        assert execute(control, "b", "ping", "-c", "5", "-W", "3", "10.9.0.1")[0] == 0
    running.process.kill()
    running.process.wait()
    assert any(line.startswith(f"domain {ours}") for line in running.leftovers())
    running.close()
    assert {d.name() for d in connection.listAllDomains()} == {theirs}
    assert running.leftovers() == []
    connection.lookupByName(theirs).destroy()
    connection.close()


def test_a_daemon_that_is_killed_takes_no_machine_along_and_the_lab_goes_without_it(
    start: Start, daemon: Daemon
) -> None:
    lab = own("vmorphan")
    plan = make_plan(lab, (machine(node(lab, 0, "a")), node(lab, 1, "b")), libvirt=daemon.uri)
    running = start(plan, state_root=daemon.states)
    control = up(running)
    pid = qemu_pid(control, "a")
    daemon.process.kill()
    daemon.process.wait()
    assert execute(control, "b", "ping", "-c", "5", "-W", "3", "10.9.0.1")[0] == 0
    refused = control.call("snapshot", nodes=["a"], name="late")
    assert not refused["ok"] and "libvirt" in refused["error"], refused
    assert control.call("down")["ok"]
    assert running.finish() == 0, running.events[-3:]
    until(5, "QEMU's end", lambda: not Path(f"/proc/{pid}").exists())
    assert running.leftovers() == []
