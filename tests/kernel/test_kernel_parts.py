"""Tests parts of the kernels that need no guest: the splitting of lines, the relay, the command line, the
console.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import time
from pathlib import Path

import pytest

from orchestrator.kernel.lab_command import max_mhz
from orchestrator.kernel.lines import LineStream
from orchestrator.kernel.process import end, session_members
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.relay import GuestRelay, HostRelay
from orchestrator.kernel.uml import boot, console, outer
from orchestrator.kernel.uml.binaries import UmlBinary, find_binaries, too_old
from orchestrator.lab.loop import Calls
from orchestrator.lab.sandbox import bounds
from orchestrator.lab.state import owned

DEBIAN = UmlBinary(Path("/usr/bin/linux.uml"), "6.1.176", "debian", Path("/usr/lib/uml/modules/6.1.176"))
BUILT = UmlBinary(Path("/k/linux"), "7.3.4-lab", "built", None)


def test_no_more_than_the_window_is_under_way():
    ours, theirs = socket.socketpair()
    stream = LineStream(ours.fileno(), window=100)
    stream.queue(b"x" * 250)
    assert len(theirs.recv(4096)) == 100
    assert not stream.pending  # it waits until the other side reads, not until the descriptor is ready
    stream.acknowledge(60)
    assert len(theirs.recv(4096)) == 60
    stream.acknowledge(160)
    assert theirs.recv(4096) == b"x" * 90 + b"\n"


def test_lines_come_whole():
    ours, theirs = socket.socketpair()
    stream = LineStream(ours.fileno())
    theirs.sendall(b'{"a":1}\n{"b"')
    assert stream.read() == [b'{"a":1}']
    theirs.sendall(b":2}\n")
    assert stream.read() == [b'{"b":2}']
    theirs.close()
    assert stream.read() == []
    assert stream.ended


def test_two_clients_share_the_line_and_get_their_own_answers(tmp_path):
    pair = socket.socketpair()
    line = [LineStream(side.fileno()) for side in pair]
    lab = socket.socket(socket.AF_UNIX)
    lab.bind(str(tmp_path / "lab.sock"))
    lab.listen()
    selector = Calls()
    outside, inside = HostRelay(line[0], selector), GuestRelay(tmp_path / "lab.sock", line[1], selector)
    outside.listen(tmp_path / "out.sock")
    selector.register(
        line[0], selectors.EVENT_READ, lambda: _carry(line[0], lambda m: outside.deliver(m["c"], m))
    )
    selector.register(line[1], selectors.EVENT_READ, lambda: _carry(line[1], inside.from_host))
    clients = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    peers = []
    for number, client in enumerate(clients):
        client.connect(str(tmp_path / "out.sock"))
        client.sendall(f"from {number}\n".encode())
        _turn(selector)
        peers.append(lab.accept()[0])
        assert peers[number].recv(99) == f"from {number}\n".encode()
    peers[1].sendall(b"to 1\n")
    peers[0].sendall(b"to 0\n")
    _turn(selector)
    assert [client.recv(99) for client in clients] == [b"to 0\n", b"to 1\n"]
    peers[0].close()
    _turn(selector)
    assert clients[0].recv(99) == b""  # when the lab closes a connection, the client's connection is closed
    clients[1].close()
    _turn(selector)
    assert peers[1].recv(99) == b""
    assert not outside.clients and not inside.clients
    outside.close()
    for end_of_line in pair:
        end_of_line.close()


def test_a_client_may_leave_in_the_moment_when_the_lab_writes_to_it(tmp_path):
    ours, theirs = socket.socketpair()
    line = LineStream(ours.fileno())
    lab = socket.socket(socket.AF_UNIX)
    lab.bind(str(tmp_path / "lab.sock"))
    lab.listen()
    calls = Calls()
    inside = GuestRelay(tmp_path / "lab.sock", line, calls)
    calls.register(line, selectors.EVENT_READ, lambda: _carry(line, inside.from_host))
    theirs.sendall(b'{"c": 7, "line": "hello"}\n')
    _turn(calls)
    peer = lab.accept()[0]
    theirs.sendall(b'{"c": 7, "eof": true}\n')  # this line is ready first, so the loop serves it first
    peer.sendall(b"too late\n")
    _turn(calls)
    assert not inside.clients
    assert peer.recv(99) == b"hello\n"


def _carry(stream, take):
    for text in stream.read():
        take(json.loads(text))


def _turn(calls):
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 0.05:
        if calls.turn(0.01):
            quiet_since = time.monotonic()


def test_the_command_line_of_either_kernel():
    debian = boot.command(DEBIAN, 600 << 20, Path("/run/vnet/pair"), "/usr/bin/python3")
    assert debian[:2] == ("/usr/bin/linux.uml", "mem=600M")
    assert not [word for word in debian if word.startswith("seccomp")]
    assert "init=/usr/bin/python3" in debian
    assert debian[-5:] == ("--", "-S", "-s", str(boot.INIT), "/run/vnet/pair/guest.json")
    assert "seccomp=auto" in boot.command(BUILT, 600 << 20, Path("/run/vnet/pair"), "/usr/bin/python3")


def test_a_space_in_the_state_directory_is_refused():
    with pytest.raises(KernelError, match=r"/tmp/my labs: .*VNET_STATE_DIR"):
        boot.command(BUILT, 1 << 30, Path("/tmp/my labs"), "/usr/bin/python3")


def test_memory_grows_with_the_nodes_and_leaves_a_quarter():
    assert boot.memory_bytes(350, available=8 << 30) == (512 + 350 * 6) << 20
    with pytest.raises(
        KernelError, match="350 nodes under uml needs 2612 MiB of memory, 3000 MiB are available"
    ):
        boot.memory_bytes(350, available=3000 << 20)


def test_what_programs_will_take_fits_into_the_lab_s_share_of_a_guest():
    java = 969_000_000
    guest = boot.memory_bytes(2, java, available=8 << 30)
    assert bounds(guest - boot.KERNEL_BYTES, 1000).lab_memory_bytes >= java
    assert boot.memory_bytes(2, 190_000_000, available=8 << 30) == boot.memory_bytes(2, available=8 << 30)


def test_memory_goes_where_programs_may_be_mapped(tmp_path):
    assert boot.memory_directory(1, ["/nonexistent", str(tmp_path)]) == tmp_path
    with pytest.raises(KernelError, match="set TMPDIR"):
        boot.memory_directory(1 << 60, [str(tmp_path)])


def test_a_given_kernel_comes_first(tmp_path):
    kernel = tmp_path / "linux"
    kernel.write_text("#!/bin/sh\necho 7.3.4-lab\n")
    kernel.chmod(0o755)
    found = find_binaries({"VNET_UML_KERNEL": str(kernel), "HOME": str(tmp_path)})
    assert (found[0].path, found[0].release, found[0].origin) == (kernel, "7.3.4-lab", "given")
    assert found[0].seccomp and not DEBIAN.seccomp


def test_a_kernel_too_old_for_the_processor_is_passed_over_and_named(tmp_path):
    kernel = tmp_path / "linux"
    kernel.write_text("#!/bin/sh\necho 6.12.117-lab\n")
    kernel.chmod(0o755)
    env = {"VNET_UML_KERNEL": str(kernel), "HOME": str(tmp_path)}
    avx, amx = "flags : fpu xsave avx512f\n", "flags : fpu xsave avx512f amx_bf16 amx_tile amx_int8\n"
    assert find_binaries(env, avx)[0].path == kernel and too_old(env, avx) == []
    assert all(binary.any_registers for binary in find_binaries(env, amx))
    assert too_old(env, amx)[0].path == kernel
    kernel.write_text("#!/bin/sh\necho 7.3.4-lab\n")
    assert find_binaries(env, amx)[0].path == kernel


def test_a_program_that_is_no_kernel_is_passed_over(tmp_path):
    (tmp_path / "linux").write_text("#!/bin/sh\necho hello\n")
    (tmp_path / "linux").chmod(0o755)
    found = find_binaries({"VNET_UML_KERNEL": str(tmp_path / "linux"), "HOME": str(tmp_path)})
    assert all(binary.origin != "given" for binary in found)


def test_the_console_explains_the_end(tmp_path):
    text = console.failure("boot\nKernel panic - not syncing: x\n", None, 134, tmp_path / "console.log")
    assert text.startswith("uml: the guest's kernel panicked; ")
    assert text.endswith("console.log says\n  boot\n  Kernel panic - not syncing: x")
    assert "did not boot within 3 s" in console.failure(
        "", "the guest did not boot within 3 s", None, tmp_path
    )


def test_killed_for_want_of_memory_is_a_warning():
    text = "[ 12.3] Out of memory: Killed process 77 (x)\nMemory cgroup out of memory: Killed process 8\n"
    (warning,) = console.warnings(text)
    assert warning["code"] == "guest-out-of-memory"
    assert "1 times: [ 12.3] Out of memory: Killed process 77" in warning["text"]


def test_outer_samples_have_the_contract_s_columns(tmp_path):
    sampler = outer.OuterSampler(tmp_path / "outer.csv")
    sampler.sample()
    sampler.close()
    header, row = (line.split(",") for line in (tmp_path / "outer.csv").read_text().splitlines())
    sample = dict(zip(header, row, strict=True))
    assert abs(int(sample["t_ns"]) - time.time_ns()) < 5e9
    assert int(sample["cores"]) == os.cpu_count()
    assert outer.cpu_ns("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1") == [n * outer.NS_PER_TICK for n in range(1, 9)]


def test_the_clock_rate_of_a_core():
    assert max_mhz("processor: 0\ncpu MHz\t\t: 2596.150\n") is not None


def test_only_members_of_the_session_with_that_binary_are_found():
    assert session_members(os.getsid(0), "/no/such/binary") == []
    ours = session_members(os.getsid(0), str(Path("/proc/self/exe").readlink()))
    assert os.getpid() in [member.pid for member in ours]


def test_a_recycled_number_is_left_alone():
    ourselves = owned("test", os.getpid())
    stranger = type(ourselves)("test", os.getpid(), ourselves.start_ticks - 1)
    assert end([stranger]) == []  # a signalled process would be waited for, and the test would hang
