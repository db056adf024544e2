"""Tests reading netlink dumps of queues: an error message of the kernel does not end the reading, a message
with an impossible length does.
"""

from __future__ import annotations

import errno
import socket
import struct
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.lab import queue_readback, rtnetlink
from orchestrator.lab.at_events import ReadBacks
from orchestrator.lab.errors import LabError

DONE, ERROR, NEWQDISC = 3, 2, 36


def _message(kind: int, body: bytes, length: int | None = None) -> bytes:
    length = 16 + len(body) if length is None else length
    return struct.pack("=IHHII", length, kind, 0, 1, 0) + body + bytes(-len(body) % 4)


def _read(*datagrams: bytes) -> list[bytes]:
    kernel, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with kernel, ours:
        for data in datagrams:
            kernel.send(data)
        return list(rtnetlink.answers(ours))


QUEUE = _message(NEWQDISC, b"one!")


def test_a_dump_ends_with_done() -> None:
    assert _read(QUEUE + QUEUE, QUEUE + _message(DONE, struct.pack("=i", 0))) == [b"one!"] * 3
    assert _read(_message(DONE, b"")) == []


@pytest.mark.parametrize("kind", [ERROR, DONE])
def test_an_error_of_the_kernel_is_one(kind: int) -> None:
    with pytest.raises(OSError) as raised:
        _read(QUEUE, _message(kind, struct.pack("=i", -errno.EPERM)))
    assert raised.value.errno == errno.EPERM


@pytest.mark.parametrize("length", [0, 15, 24, 1 << 31])
def test_an_impossible_length_is_an_error(length: int) -> None:
    with pytest.raises(OSError, match=f"a message of {length} bytes in 20"):
        _read(_message(NEWQDISC, b"one!", length))


def test_half_a_header_is_an_error() -> None:
    with pytest.raises(OSError, match="in 7"):
        _read(QUEUE[:7])


def test_queues_that_cannot_be_read_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> Any:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(queue_readback, "enter", lambda _: None)
    monkeypatch.setattr(queue_readback, "_queues", refused)
    node = SimpleNamespace(netns="vnet-x.a", vm=None, name="a")
    manifest = SimpleNamespace(kernel={})
    lab: Any = SimpleNamespace(
        nodes={"a": node}, links={}, driver=SimpleNamespace(name="light"), manifest=manifest
    )
    with pytest.raises(LabError, match=r"vnet-x\.a: its queues cannot be read: Operation not permitted"):
        queue_readback.look(lab)


def test_what_was_found_before_is_told_though_the_last_look_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: object) -> Any:
        raise LabError("its queues cannot be read")

    warned: list[Any] = []
    lab: Any = SimpleNamespace(events=SimpleNamespace(warn=warned.append))
    at = ReadBacks(lab)
    at._found = {queue_readback.readback.Difference("vnet-x.a.eth0", "nothing", "tbf"): ""}
    monkeypatch.setattr(queue_readback, "changed", refused)
    with pytest.raises(LabError):
        at.end()
    assert [w.code for w in warned] == ["changed"] and "read back tbf" in warned[0].text
