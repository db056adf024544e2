"""Tests captures by the agent's launcher on the real kernel against tcpdump, which captures the same device
at the same time: frames, counts, filters, drops, and what ends a capture early.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agent_ethernet import ended
from agent_launcher import Launcher

from capture import tcpdump

RING = 1 << 20
SOURCE = bytes.fromhex("02004d00ffaa")
NEAR_NS = 50_000_000  # the two sockets of a frame stamp it one after the other, on a machine that is busy
# Sends on eth0, from the standard input, one frame a line in hexadecimal.
SENDER = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for line in sys.stdin:
    s.send(bytes.fromhex(line))
"""


@dataclass(frozen=True)
class Record:
    at_ns: int
    wire: int
    data: bytes


def read(path: Path) -> tuple[bytes, list[Record]]:
    """Returns the header of a pcap file, and its records."""
    text, found, at = path.read_bytes(), [], 24
    while at < len(text):
        s, ns, kept, wire = struct.unpack_from("=IIII", text, at)
        found.append(Record(s * 10**9 + ns, wire, text[at + 16 : at + 16 + kept]))
        at += 16 + kept
    assert at == len(text), "the last record is cut"
    return text[:24], found


def ethernet(kind: int, payload: bytes, vlan: tuple[int, int] | None = None) -> bytes:
    tag = struct.pack("!HH", *vlan) if vlan else b""
    return bytes(6 * [255]) + SOURCE + tag + struct.pack("!H", kind) + payload


def udp(port: int, size: int) -> bytes:
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + size, 0, 0, 64, 17, 0, b"\x0a\x4d\0\1", b"\x0a\x4d\0\2")
    return head + struct.pack("!HHHH", 4000, port, 8 + size, 0) + bytes(i % 251 for i in range(size))


# every kind that a capture treats in a way of its own: sizes around the snap length, tags, other frames
FRAMES = [
    *(ethernet(0x0800, udp(7, size)) for size in (18, 54, 55, 400, 1472)),
    *(ethernet(0x0800, udp(9, size), (0x8100, 5)) for size in (18, 50, 54, 55, 1400)),
    ethernet(0x0800, udp(7, 100), (0x88A8, 0x6005)),
    ethernet(0x88B5, bytes(46)), ethernet(0x0806, bytes(46)),
]  # fmt: skip


def send(launcher: Launcher, frames: list[bytes], node: str = "a") -> None:
    argv = ["ip", "netns", "exec", launcher.netns(node), "/usr/bin/env", "python3", "-c", SENDER]
    subprocess.run(argv, input="".join(f"{f.hex()}\n" for f in frames), text=True, check=True)


def program(launcher: Launcher, wanted: str, snaplen: int) -> list[tuple[int, int, int, int]]:
    if not wanted:
        return []
    point = SimpleNamespace(device="p0", snaplen=snaplen, filter=wanted)
    argv = ["ip", "netns", "exec", launcher.core, *tcpdump.compile_argv(point)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return tcpdump.program(done.stdout)


def asked(launcher: Launcher, wanted: str = "", snaplen: int = 96, **other: Any) -> int:
    fields = {
        "name": "c", "netns": launcher.core, "device": "p0", "file": str(launcher.directory / "own.pcap"),
        "snaplen": snaplen, "ring_bytes": RING, "filter": program(launcher, wanted, snaplen),
    }  # fmt: skip
    return launcher.send("capture", **{**fields, **other})


def begin(launcher: Launcher, wanted: str = "", snaplen: int = 96, **other: Any) -> int:
    """Starts a capture and returns the request's number once it captures."""
    number = asked(launcher, wanted, snaplen, **other)
    launcher.until(lambda e: e.get("event") == "capturing" and e["id"] == number)
    return number


def end(launcher: Launcher, number: int) -> dict[str, Any]:
    launcher.do("capture-end", target=number)
    return launcher.answer(number)


def oracle(launcher: Launcher, wanted: str, snaplen: int) -> subprocess.Popen[str]:
    argv = [
        "ip", "netns", "exec", launcher.core, "tcpdump", "-n", "-i", "p0", "-s", str(snaplen), "-U",
        "--time-stamp-precision=nano", "-w", str(launcher.directory / "tcpdump.pcap"),
        "-Z", "root", "--", wanted,
    ]  # fmt: skip
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None and "listening on" in process.stderr.readline()
    return process


def awaited(launcher: Launcher, file: str, records: int) -> None:
    """Waits until tcpdump has written so many records."""
    until = time.monotonic() + 20
    while len(read(launcher.directory / file)[1]) < records:
        assert time.monotonic() < until, f"{file} lacks records"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("wanted", "snaplen", "some"),
    [
        ("", 96, len(FRAMES)), ("", tcpdump.WHOLE_FRAME, len(FRAMES)), ("", 60, len(FRAMES)),
        ("udp port 7", 96, 6), ("vlan 5", 100, 6), ("vlan and udp port 9", 96, 5), ("not vlan", 96, 7),
        ("ether proto 0x88b5 or arp", 70, 2), ("greater 500 and udp", 96, 2),
        ("outbound", 96, 0),
    ],
)  # fmt: skip
def test_frames_and_counts_are_tcpdumps(launcher: Launcher, wanted: str, snaplen: int, some: int) -> None:
    """`some`: the number of frames that match. The capture ends at once after the last frame."""
    launcher.lab_up(["a", "b"])
    other = oracle(launcher, wanted, snaplen)
    number = begin(launcher, wanted, snaplen)
    send(launcher, FRAMES)
    counts = end(launcher, number)
    awaited(launcher, "tcpdump.pcap", some)
    ended(other)
    header, all_own = read(launcher.directory / "own.pcap")
    their_header, all_theirs = read(launcher.directory / "tcpdump.pcap")
    assert header == their_header
    # the bridge may send frames of IGMP between the two starts
    own, theirs = ([r for r in found if r.data[6:12] == SOURCE] for found in (all_own, all_theirs))
    assert len(own) == some
    assert [(r.wire, r.data) for r in own] == [(r.wire, r.data) for r in theirs]
    assert all(abs(a.at_ns - b.at_ns) < NEAR_NS for a, b in zip(own, theirs, strict=True))
    assert [r.at_ns for r in own] == sorted(r.at_ns for r in own)
    assert counts == {
        "id": number, "ok": True, "packets": len(all_own), "received": len(all_own), "dropped_kernel": 0,
        "dropped_interface": 0,
    }  # fmt: skip


def test_inbound_frames_are_those_that_reach_the_device(launcher: Launcher) -> None:
    """tcpdump itself loses them as long as its library filters again, outside the kernel, where a frame's
    direction is unknown.
    """
    launcher.lab_up(["a", "b"])
    number = begin(launcher, "inbound")
    send(launcher, FRAMES)
    assert end(launcher, number)["packets"] == len(FRAMES)


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_frames_that_find_a_full_ring_are_counted_and_later_ones_are_captured(launcher: Launcher) -> None:
    """The capture is stopped while more frames come than two blocks hold, then goes on."""
    launcher.lab_up(["a", "b"])
    before = children(launcher.process.pid)
    number = begin(launcher, "ether proto 0x88b5", tcpdump.WHOLE_FRAME, ring_bytes=1 << 18)
    (helper,) = set(children(launcher.process.pid)) - set(before)
    os.kill(helper, signal.SIGSTOP)
    many = [ethernet(0x88B5, struct.pack("!I", i) + bytes(1000)) for i in range(500)]
    send(launcher, many)
    os.kill(helper, signal.SIGCONT)
    first = launcher.directory / "own.pcap"
    until = time.monotonic() + 10
    while first.stat().st_size < 100_000:  # until the full blocks are free again
        assert time.monotonic() < until
        time.sleep(0.02)
    time.sleep(0.1)
    late = [ethernet(0x88B5, struct.pack("!I", i) + bytes(46)) for i in range(1000, 1003)]
    send(launcher, late)
    counts = end(launcher, number)
    found = [struct.unpack_from("!I", r.data, 14)[0] for r in read(first)[1]]
    assert found[-3:] == [1000, 1001, 1002]
    assert found[:-3] == list(range(len(found) - 3)), "the first frames, in their order, none twice"
    assert counts["dropped_kernel"] == 503 - len(found) > 0
    assert (counts["packets"], counts["received"]) == (len(found), 503)


def test_a_device_that_is_down_for_a_while_is_captured_again(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b"])
    number = begin(launcher, "ether proto 0x88b5")
    send(launcher, [ethernet(0x88B5, b"1" * 46)])
    for state in ("down", "up"):
        subprocess.run(["ip", "-n", launcher.core, "link", "set", "p0", state], check=True)
    send(launcher, [ethernet(0x88B5, b"2" * 46)])
    assert end(launcher, number)["packets"] == 2
    assert [r.data[14:15] for r in read(launcher.directory / "own.pcap")[1]] == [b"1", b"2"]


def test_a_device_that_disappears_ends_the_capture_and_what_it_had_is_kept(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b"])
    number = begin(launcher, "ether proto 0x88b5")
    send(launcher, [ethernet(0x88B5, b"1" * 46)])
    subprocess.run(["ip", "-n", launcher.core, "link", "del", "p0"], check=True)
    answer = launcher.answer(number)
    assert not answer["ok"] and "device p0 has disappeared" in answer["error"]
    assert len(read(launcher.directory / "own.pcap")[1]) == 1, "what came before is kept"
    assert "not running" in launcher.ask("capture-end", target=number)["error"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"device": "p9"}, "interface p9: not on this node, which has br0, lo, p0"),
        ({"netns": "vnet-nowhere"}, "namespace vnet-nowhere: "),
        ({"file": "/nowhere/c.pcap"}, "/nowhere/c.pcap: No such file"),
        ({"file": "/dev/full"}, "/dev/full: No space left on device"),
        ({"device": "lo"}, "device lo: hardware type 772; captures need Ethernet"),
        ({"filter": [(6, 0, 0)]}, "request does not fit the contract"),
        ({"filter": [(255, 0, 0, 0)]}, "socket option"),
    ],
)
def test_what_cannot_be_captured_is_refused(launcher: Launcher, wrong: dict[str, Any], said: str) -> None:
    launcher.lab_up(["a", "b"])
    before = children(launcher.process.pid)
    answer = launcher.answer(asked(launcher, **wrong))
    assert not answer["ok"] and said in answer["error"], answer
    until = time.monotonic() + 10
    while children(launcher.process.pid) != before:
        assert time.monotonic() < until, "its process is still there"
        time.sleep(0.01)


def test_a_capture_ends_with_the_launcher(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b"])
    before = children(launcher.process.pid)
    begin(launcher)
    (helper,) = set(children(launcher.process.pid)) - set(before)
    launcher.do("quit")
    launcher.process.wait(20)
    until = time.monotonic() + 10
    while alive(helper):
        assert time.monotonic() < until, "it still captures"
        time.sleep(0.01)


def test_a_capture_that_is_killed_is_told(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b"])
    before = children(launcher.process.pid)
    number = begin(launcher)
    (helper,) = set(children(launcher.process.pid)) - set(before)
    os.kill(helper, signal.SIGKILL)
    answer = launcher.answer(number)
    assert not answer["ok"] and "ended without an answer" in answer["error"]


def test_the_program_of_a_filter_is_read_whole_or_refused() -> None:
    assert tcpdump.program("2\n40 0 0 12\n6 0 0 96\n") == [(40, 0, 0, 12), (6, 0, 0, 96)]
    for wrong in ("", "2\n6 0 0 96\n", "1\n6 0 0\n", "(000) ret #96\n"):
        with pytest.raises(ValueError, match="no program"):
            tcpdump.program(wrong)
