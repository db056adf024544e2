"""Tests parts of the driver for VM nodes without a machine: clocks, records, counters, merged
answers, waits.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_plans import MS, SECOND, own
from vm_agents import Agent, Told, guest_of

from contract.plan import Direction, Impairment, Link
from orchestrator.lab.clock import MonotonicClock
from orchestrator.lab.launcher import Launcher
from orchestrator.lab.loop import Loop
from orchestrator.lab.machine import insist_on_memory
from orchestrator.lab.operations import Configure, Operation, Pending, Start, Workload
from orchestrator.lab.vm import carry, connection, dialogue, merge
from orchestrator.lab.vm.boot import Booting
from orchestrator.lab.vm.clocks import Estimate, GuestClock, estimate
from orchestrator.lab.vm.counters import Rising, ports, together
from orchestrator.lab.vm.dispatcher import Dispatcher
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.records import Fetched, Records, corrected
from orchestrator.lab.vm.silence import Silence
from orchestrator.lab.vm.workers import Workers


@pytest.fixture
def loop() -> Loop:
    return Loop(MonotonicClock(0))


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path / "agent.sock", offset_ns=7 * SECOND)
    yield made
    made.close()


def test_a_clock_is_estimated_to_half_a_round_trip(agent: Agent, tmp_path: Path, loop: Loop) -> None:
    guest = guest_of(tmp_path, loop)
    found, errors = dialogue.together(loop, "clock", 60 * SECOND, [(guest, estimate(loop.clock))])
    assert errors == {}
    assert abs(found["a"].offset_ns - 7 * SECOND) <= found["a"].error_ns < 50 * MS


def test_times_are_carried_over_linearly_between_estimates() -> None:
    clock = GuestClock([Estimate(1000, 500, 10), Estimate(2000, 600, 20)])
    assert clock.to_lab(1500) == 1000
    assert clock.to_lab(2600) == 2000
    assert clock.to_lab(2050) == 1500, "half way in both clocks"
    assert clock.to_lab(10_600) == 10_000, "constant after the last"
    assert clock.to_guest(3000) == 3600
    facts = clock.facts()
    assert (facts["offset_ns"], facts["error_ns"], facts["estimates"]) == (500, 20, 2)
    assert facts["drift_ppm"] == pytest.approx(100_000)


def test_a_bent_clock_has_a_larger_error() -> None:
    straight = GuestClock([Estimate(0, 0, 5), Estimate(100, 10, 5), Estimate(200, 20, 5)])
    bent = GuestClock([Estimate(0, 0, 5), Estimate(100, 40, 5), Estimate(200, 20, 5)])
    assert (straight.facts()["error_ns"], bent.facts()["error_ns"]) == (5, 35)


def test_records_get_the_labs_time_whatever_a_topic_holds() -> None:
    def to_lab(time: int) -> int:
        return time - 100

    assert corrected("S,7,1,90,1100,1200,0,2,settled", to_lab) == "S,7,1,90,1000,1100,0,2,settled"
    assert corrected('R,7,1,"a, b",0,1300,0', to_lab) == 'R,7,1,"a, b",0,1200,0'
    assert corrected('B,7,"a, b",1,1300,9,9,,,150', to_lab) == 'B,7,"a, b",1,1200,9,9,,,150'
    assert corrected("C,c,failed,1400,refused, try later", to_lab) == "C,c,failed,1300,refused, try later"


def test_a_growing_file_comes_in_whole_lines(agent: Agent, tmp_path: Path, loop: Loop) -> None:
    text = "".join(f"R,0,{n},s,0,{n + 1},0\n" for n in range(5000)).encode()
    agent.files["/m"] = text[:70_001]
    records = Records(GuestClock([Estimate(0, 0, 0)]))
    records.path = tmp_path / "messages.csv"
    file, guest = Fetched("/m", records.take), guest_of(tmp_path, loop)
    for size in (70_001, len(text)):
        agent.files["/m"] = text[:size]
        _, errors = dialogue.together(loop, "file", 60 * SECOND, [(guest, file.rest())])
        assert errors == {}
    assert records.path.read_bytes() == text
    assert all(r["length"] <= 48 * 1024 for r in agent.seen if r["op"] == "fetch")


def test_a_file_that_is_not_there_is_no_error(agent: Agent, tmp_path: Path, loop: Loop) -> None:
    taken: list[bytes] = []
    fetches = [(guest_of(tmp_path, loop), Fetched("/none", taken.append).rest())]
    assert dialogue.together(loop, "file", 60 * SECOND, fetches) == ({"a": None}, {})
    assert taken == []


def test_counters_rise_over_a_machine_that_began_anew() -> None:
    rising = Rising()
    assert [rising.take("cpu", v) for v in (700, 900, 50, 60)] == [0, 200, 250, 260]


def test_ports_are_read_as_the_kernel_writes_them() -> None:
    text = "Inter-| Receive\n face |bytes\n  tap0: 10 2 0 0 0 0 0 0 30 4 0 0 0 0 0 0\n"
    text += "    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
    assert ports(text) == {"tap0": (10, 2, 30, 4), "lo": (1, 1, 1, 1)}


def test_a_machine_counts_every_one_of_its_ports() -> None:
    wires = {"tap0": (10, 2, 30, 4), "tap1": (100, 20, 300, 40), "other": (7, 7, 7, 7)}
    # "" stands for a NIC that was passed to the machine
    assert together(wires, ["tap0", "tap1", ""]) == (110, 22, 330, 44)
    assert together(wires, []) == (0, 0, 0, 0)


def test_answers_are_joined() -> None:
    a = {"id": 1, "ok": True, "pending": 2, "totals": {"sent": 5}, "nodes": {"x": {"s": 1}}}
    b = {"id": 9, "ok": True, "pending": 3, "totals": {"sent": 7, "acked": 1}, "nodes": {"y": {"s": 2}}}
    assert merge.joined([a, b]) == {
        "ok": True, "pending": 5, "totals": {"sent": 12, "acked": 1}, "nodes": {"x": {"s": 1}, "y": {"s": 2}},
    }  # fmt: skip
    refused = {"ok": False, "error": "no"}
    assert merge.joined([a, refused, b]) == refused


def test_a_request_goes_where_its_node_is(agent: Agent, tmp_path: Path, loop: Loop) -> None:
    guest, light, logs = guest_of(tmp_path, loop), [], []

    def launcher(request: Operation[Any], on_answer: Any, on_event: Any = None) -> int:
        light.append(request)
        on_answer({"ok": True})
        return 1

    silence = Silence(loop, {"a": guest}, Told())
    dispatcher = Dispatcher(
        loop, launcher, {"a": guest}, silence, lambda g, inside, path: logs.append((inside, path))
    )
    answers: list[dict[str, Any]] = []
    dispatcher.submit(Start("a", {}, "/run/raw/logs/a.x.log"), answers.append)
    of_light = Start("b", {}, "/run/raw/logs/b.x.log")
    dispatcher.submit(of_light, answers.append)
    dispatcher.submit(Workload([{"node": "b"}, {"node": "a"}]), answers.append)  # type: ignore[list-item]
    loop.until(loop.clock.now_ns() + 60 * SECOND, "answers", lambda: len(answers) == 3)
    assert logs == [("/run/vnet/logs/a.x.log", "/run/raw/logs/a.x.log")]
    assert [(r["op"], r.get("log")) for r in agent.seen] == [
        ("start", "/run/vnet/logs/a.x.log"),
        ("workload", None),
    ]
    assert light == [of_light, Workload([{"node": "b"}])]  # type: ignore[list-item]
    assert agent.seen[1]["items"] == [{"node": "a"}]


def test_a_machine_that_dies_while_all_are_asked_is_left_out(tmp_path: Path, loop: Loop) -> None:
    from orchestrator.lab.errors import LabError

    class Dying:
        lost = False

        def submit(self, request: Operation[Any], *_: Any) -> int:
            raise LabError("launcher: pending: it has ended (Broken pipe)")

    def launcher(request: Operation[Any], on_answer: Any, on_event: Any = None) -> int:
        on_answer({"ok": True, "pending": 3})
        return 1

    guest = guest_of(tmp_path)
    guest.channel, guest.state = Dying(), "running"  # type: ignore[assignment]
    answers: list[dict[str, Any]] = []
    silence = Silence(loop, {"a": guest}, Told())
    Dispatcher(loop, launcher, {"a": guest}, silence, lambda *_: None).submit(Pending(), answers.append)
    assert answers == [{"ok": True, "pending": 3}]


def test_the_consoles_last_lines_are_told_without_escapes(tmp_path: Path) -> None:
    guest = guest_of(tmp_path)
    assert guest.last_words() == "nothing"
    guest.console_log.write_bytes(b"\x1b[2J\x1b[32mbooting\x1b[0m\r\n\r\nKernel panic\r\n")
    assert guest.last_words() == "booting / Kernel panic"


def test_machines_that_the_memory_does_not_hold_are_refused_before_they_are_made() -> None:
    from lab_plans import machine, node

    from orchestrator.lab.errors import LabError

    nodes = (machine(node("x", 0, "a"), memory_mib=96), node("x", 1, "light"), machine(node("x", 2, "b")))
    insist_on_memory(nodes, "MemTotal: 900000 kB\nMemAvailable: 400000 kB\n")
    insist_on_memory(nodes[1:2], "MemAvailable: 1 kB\n")
    insist_on_memory(nodes, "")
    with pytest.raises(LabError, match=r"nodes.a: 2 virtual machine\(s\) need about .* 256 MB are free; "):
        insist_on_memory(nodes, "MemAvailable: 250000 kB\n")


def test_boots_are_bounded_and_each_failure_says_why(tmp_path: Path, loop: Loop) -> None:
    """Boots six machines, two at a time; one is refused, one never answers, and each error says why."""
    from orchestrator.lab.errors import LabError

    workers = Workers(loop, 4, None)
    at_once, most, states = 0, 0, []
    agents: list[Agent] = []

    def create(guest: Guest) -> object:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        if guest.name == "b1":
            at_once -= 1
            raise LabError("nodes.b1: libvirt refuses: no")
        guest.directory.mkdir()
        if guest.name == "b2":
            silent = socket.socket(socket.AF_UNIX)
            silent.bind(str(guest.directory / "agent.sock"))
            silent.listen()
            agents.append(silent)  # type: ignore[arg-type]
            return object()
        agents.append(Agent(guest.directory / "agent.sock"))
        return object()

    def tell(guest: Guest, state: str) -> None:
        nonlocal at_once
        states.append((guest.name, state))
        at_once -= state == "agent up"

    def connect(guest: Guest) -> Launcher:
        return Launcher(loop, guest.directory / "agent.sock", lambda _: None, lambda _: None)

    def configured(guest: Guest) -> dialogue.Dialogue[dict[str, Any]]:
        yield from dialogue.ask(Configure([]))
        return {"who": guest.name}

    guests = [guest_of(tmp_path / f"b{n}", name=f"b{n}") for n in range(6)]
    import dataclasses

    for guest in guests:
        assert guest.node.vm is not None
        vm = dataclasses.replace(guest.node.vm, boot_deadline_ns=SECOND)
        guest.node = dataclasses.replace(guest.node, vm=vm)
    try:
        came = Booting(loop, workers, 2, "booting", create, connect, tell, configured).run(guests)
    finally:
        workers.close()
        for made in agents:
            made.close()
    read, failed = came.read, came.failed
    assert failed.keys() == {"b1", "b2"} and read == {f"b{n}": {"who": f"b{n}"} for n in (0, 3, 4, 5)}
    assert failed["b1"].startswith("libvirt refuses: no"), "its name is said once, by who tells it"
    assert "did not answer within 1 s" in failed["b2"] and "its console ends: nothing" in failed["b2"]
    assert [s for n, s in states if n == "b0"] == ["booting", "agent up"]
    assert most <= 2
    assert 0 < came.up_ns < SECOND, "the silent one does not count"


def test_counters_of_qdiscs_inside_a_bridge_vm_become_rows() -> None:
    way = Impairment(delay_ns=MS, limit_packets=1000)
    link = Link(
        "wan", "a", "b", "segments",
        Direction(way, "vnet-x.netem-wan", "eth1", "vnet-x", "wan-b", "wan-a", "wan-b"),
        Direction(way, "vnet-x.netem-wan", "eth0", "vnet-x", "wan-a", "wan-b", "wan-a"),
    )  # fmt: skip
    said = json.dumps([
        {"kind": "noqueue", "dev": "lo", "root": True, "bytes": 1},
        {"kind": "netem", "dev": "eth1", "root": True, "bytes": 100, "packets": 2, "drops": 1,
         "overlimits": 0, "backlog": 50, "qlen": 1},
    ])  # fmt: skip
    assert carry.link_rows(5, [link], "vnet-x.netem-wan", said) == "5,wan,forward,100,2,1,0,50,1\n"
    assert carry.link_rows(5, [link], "vnet-x.other", said) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may enter a namespace")
def test_only_the_worker_is_in_the_labs_namespace(loop: Loop) -> None:
    import subprocess

    subprocess.run(["ip", "netns", "add", own("vnet-vmtest")], check=True)
    try:
        workers = Workers(loop, 2, own("vnet-vmtest"))
        here = Path("/proc/thread-self/ns/net")
        (future,) = workers.together("a look", 60 * SECOND, [here.readlink])
        workers.close()
        inode = Path("/run/netns", own("vnet-vmtest")).stat().st_ino
        assert str(future.result()) == f"net:[{inode}]" != str(Path("/proc/self/ns/net").readlink())
    finally:
        subprocess.run(["ip", "netns", "del", own("vnet-vmtest")], check=True)


def test_what_libvirt_asked_qemu_is_kept_from_one_lab_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that libvirt's answers about QEMU, which take seconds under emulation, are kept: the end of a lab
    removes only its link to them.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for lab in ("one", "two", "two"):
        connection._prepare(tmp_path / lab / "v")
        (tmp_path / lab / "v" / "cache" / f"of-{lab}").touch()
    shutil.rmtree(tmp_path / "one")
    kept = tmp_path / "cache" / "vnet" / "libvirt"
    assert sorted(f.name for f in kept.iterdir()) == ["of-one", "of-two"]
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc")
    connection._prepare(tmp_path / "three" / "v")
    assert not (tmp_path / "three" / "v" / "cache").exists(), "where nothing can be kept it is the lab's own"
