"""Tests real guests: boot, netem, the control line, and that nothing is left however a guest ends."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kernel_plans import PAYLOAD, plan

from orchestrator.kernel.process import session_members
from orchestrator.kernel.protocol import Launch
from orchestrator.kernel.uml import boot
from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.kernel.uml.kernel import UmlKernel, cleanup_uml
from orchestrator.lab.state import processes, read_lab

BINARIES = find_binaries()
PROJECT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.uml,
    pytest.mark.timeout(90),
    pytest.mark.skipif(not BINARIES, reason="no User-Mode Linux kernel: apt-get install user-mode-linux"),
]


def until(what, probe, deadline_s=30.0):
    end = time.monotonic() + deadline_s
    while not probe():
        assert time.monotonic() < end, f"{what}: not within {deadline_s} s"
        time.sleep(0.02)


def kernel_that(*what, binary=None, **options):
    def payload(launch, guest_state):
        return [f"/host{PAYLOAD}", str(guest_state), *(str(word) for word in what)]

    return UmlKernel([binary or BINARIES[0]], payload, **options)


@pytest.fixture
def launch(tmp_path):
    """Yields a launch; asserts at the end that its processes and state directory are gone."""
    state = Path("/tmp") / f"vnet-test-{os.getpid()}" / "pair"  # a short path, because it holds sockets
    yield Launch(plan(), tmp_path / "run", state, Path("/bin/true"), scenario=False)
    left = processes(state)
    cleanup_uml(state)
    shutil.rmtree(state.parent, ignore_errors=True)
    assert left == [], "the lab left processes on record"


def follow(lab, until_event):
    """Returns the events up to the first one with that name, by name; fails and shows them if the lab ends
    before.
    """
    seen = {}
    for event in lab.events():
        seen[event["event"]] = event
        if event["event"] == until_event:
            return seen
    raise AssertionError(f"the lab ended before {until_event}: {seen}")


def guest_processes(state_dir):
    kernel = next(p for p in processes(state_dir) if p.role == "uml")
    return kernel, (state_dir / "binary").read_text()


@pytest.mark.parametrize("binary", BINARIES, ids=[b.origin for b in BINARIES])
def test_a_guest_has_what_a_lab_needs(launch, binary):
    lab = kernel_that("wait", binary=binary, why="for the test").start(launch)
    facts = follow(lab, "ready")["facts"]
    assert 0.020 <= facts["round_trip_s"] < 0.5
    assert facts["uid"] == 0
    assert {"cpu", "memory", "pids"} <= set(facts["controllers"])
    assert facts["kernel"] == {"kind": "uml", "release": binary.release, "why": "for the test"}
    assert facts["machine"]["kernel"] == os.uname().release
    assert abs(facts["time_s"] - time.time()) < 5
    recorded = read_lab(launch.state_dir)
    assert (recorded["lab"], recorded["kernel"], recorded["run_dir"]) == ("pair", "uml", str(launch.run_dir))
    assert [p.role for p in processes(launch.state_dir)] == ["lab", "uml"]
    lab.interrupt()
    assert lab.wait(30) == 7
    assert not launch.state_dir.exists()


@pytest.mark.parametrize("binary", BINARIES, ids=[b.origin for b in BINARIES])
def test_under_no_umask_does_another_account_reach_a_socket_of_the_guest(launch, binary):
    """Shows that even with umask 0 no other account can write to a socket of the guest, such as mconsole,
    which can halt the guest.
    """
    before = os.umask(0)
    try:
        lab = kernel_that("wait", binary=binary).start(launch)
    finally:
        os.umask(before)
    follow(lab, "ready")
    until("control.sock", lab.control.exists)
    sockets = [path for path in launch.state_dir.rglob("*") if path.is_socket()]
    assert {path.name for path in sockets} >= {"control.sock"}
    assert (launch.state_dir / boot.OWN).stat().st_mode & 0o077 == 0
    assert [path for path in sockets if open_to_others(path, launch.state_dir)] == []
    lab.interrupt()
    assert lab.wait(30) == 7


def open_to_others(path, root):
    """Returns whether another account can connect: it needs write permission on the socket and may enter
    every directory below root.
    """
    passed = [parent for parent in path.parents if parent.is_relative_to(root)]
    return bool(path.stat().st_mode & 0o022) and all(place.stat().st_mode & 0o011 for place in passed)


def test_requests_of_any_size_and_several_clients_go_through(launch):
    lab = kernel_that("wait").start(launch)
    follow(lab, "ready")
    until("control.sock", lab.control.exists)
    clients = []
    for _ in range(3):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(lab.control))
        clients.append(client.makefile("rwb"))
    sizes = [1, 5_000, 300_000]
    for number, (client, size) in enumerate(zip(clients, sizes, strict=True)):
        client.write(json.dumps({"id": number, "data": "x" * size}).encode() + b"\n")
        client.flush()
    for number, (client, size) in enumerate(zip(clients, sizes, strict=True)):
        assert json.loads(client.readline()) == {"id": number, "ok": True, "data": "x" * size}
    assert lab.control.stat().st_mode & 0o077 == 0
    lab.interrupt()
    assert list(lab.events())[-1] == {"event": "end", "status": 7}
    assert lab.wait(30) == 7
    assert all(client.readline() == b"" for client in clients)


def test_results_and_status_come_out(launch):
    lab = kernel_that("exit", launch.run_dir).start(launch)
    assert lab.wait(60) == 5
    error, end = lab.events()  # the guest ended without a message
    assert "the lab process ended with status 5 before its work was done" in error["text"]
    assert "the payload leaves\n" in error["text"]
    assert end == {"event": "end", "status": 5}
    assert (launch.run_dir / "result").read_text() == "measured\n"
    assert json.loads((launch.run_dir / "plan.json").read_text())["lab"] == "pair"
    assert len((launch.run_dir / "raw" / "outer.csv").read_text().splitlines()) >= 3


def test_a_panic_is_told_with_the_console(launch):
    lab = kernel_that("panic").start(launch)
    events = list(lab.events())
    assert lab.wait(30) == 1
    assert "uml: the guest's kernel panicked; " in events[-2]["text"]
    assert "compulsory panic_on_oom is enabled" in events[-2]["text"]
    assert events[-1] == {"event": "end", "status": 1}


def test_a_set_up_that_fails_says_at_which_step(launch, monkeypatch, tmp_path):
    broken = boot.INIT.read_text().replace('mount("overlay"', 'mount("underlay"')
    (tmp_path / "init.py").write_text(broken)
    monkeypatch.setattr(boot, "INIT", tmp_path / "init.py")
    lab = kernel_that("wait").start(launch)
    events = list(lab.events())
    assert lab.wait(30) == 1
    assert "uml: the guest's set-up failed; " in events[0]["text"]
    assert "vnet-boot: failed: mount underlay at /run/root: No such device" in events[0]["text"]


def test_a_guest_that_does_not_boot_in_time_is_ended(launch):
    lab = kernel_that("wait", deadline_s=0.05).start(launch)
    events = list(lab.events())
    assert lab.wait(30) == 1
    assert "uml: the guest did not boot within 0.05 s" in events[0]["text"]


def test_a_second_lab_of_the_name_is_refused_and_the_first_unharmed(launch, tmp_path):
    first = kernel_that("wait").start(launch)
    follow(first, "ready")
    again = Launch(launch.plan, tmp_path / "again", launch.state_dir, launch.agent, scenario=False)
    second = kernel_that("wait").start(again)
    assert "lab pair: the name is in use" in next(iter(second.events()))["text"]
    assert second.wait(30) == 1
    second.kill()
    assert first.process.poll() is None
    first.interrupt()
    assert first.wait(30) == 7


def test_kill_9_of_the_owner_takes_the_guest_along(launch):
    lab = kernel_that("wait").start(launch)
    follow(lab, "ready")
    guest, binary = guest_processes(launch.state_dir)
    lab.process.send_signal(signal.SIGKILL)
    lab.process.wait()
    until("the guest's end", lambda: not guest.alive)
    until("the end of its threads", lambda: session_members(guest.pid, binary) == [])
    assert launch.state_dir.exists()  # the owner process, which would remove the directory, was killed
    cleanup_uml(launch.state_dir)
    assert not launch.state_dir.exists()


@pytest.mark.parametrize("seed", range(4))
def test_kill_9_while_booting_leaves_nothing(launch, seed):
    lab = kernel_that("wait").start(launch)
    time.sleep(random.Random(seed).uniform(0.0, 1.5))  # any moment from the owner's start to the lab's start
    lab.process.send_signal(signal.SIGKILL)
    lab.process.wait()
    recorded = processes(launch.state_dir)
    cleanup_uml(launch.state_dir)
    assert [p for p in recorded if p.alive] == []
    until(
        "no kernel with this state directory", lambda: not named_by_a_process(f"uml_dir={launch.state_dir}")
    )
    assert not launch.state_dir.exists()


def named_by_a_process(argument):
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if argument.encode() in entry.read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


def test_kill_9_of_the_guest_is_told(launch):
    lab = kernel_that("wait").start(launch)
    follow(lab, "ready")
    until("serving", lab.control.exists)
    guest, binary = guest_processes(launch.state_dir)
    os.kill(guest.pid, signal.SIGKILL)
    assert "the guest ended by itself" in follow(lab, "end")["error"]["text"]
    assert lab.wait(30) == 1
    assert session_members(guest.pid, binary) == []
    # later commands read this reason
    assert "the guest ended by itself" in read_lab(launch.state_dir)["died"]
    cleanup_uml(launch.state_dir)
    assert not launch.state_dir.exists()


def test_kill_leaves_nothing(launch):
    lab = kernel_that("wait").start(launch)
    follow(lab, "ready")
    guest, binary = guest_processes(launch.state_dir)
    lab.kill()
    assert session_members(guest.pid, binary) == []
    assert not launch.state_dir.exists()


def test_a_run_ends_with_the_command_that_wanted_it(launch):
    run = Launch(launch.plan, launch.run_dir, launch.state_dir, launch.agent, scenario=True)
    lab = kernel_that("wait").start(run)
    follow(lab, "ready")
    lab.process.stdin.close()  # has the same effect as the end of this process
    assert list(lab.events())[-1] == {"event": "end", "status": 7}
    assert lab.wait(30) == 7


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_boots_a_guest_too(tmp_path_factory):
    place = Path(f"/tmp/vnet-test-user-{os.getpid()}")
    copy = place / "project"
    for package in ("orchestrator", "contract", "tests/kernel"):
        shutil.copytree(PROJECT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    kernel = place / "linux"
    shutil.copy(BINARIES[0].path, kernel)
    try:
        for path in [place, *place.rglob("*")]:
            os.chown(path, 65534, 65534)
        environment = {"PATH": os.environ["PATH"], "HOME": str(place), "VNET_UML_KERNEL": str(kernel)}
        test = f"{copy}/tests/kernel/{Path(__file__).name}::test_results_and_status_come_out"
        answer = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, test],
            env={**environment, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=copy, user=65534, group=65534, extra_groups=[], capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert "1 passed" in answer.stdout, answer.stdout + answer.stderr
    finally:
        shutil.rmtree(place)
