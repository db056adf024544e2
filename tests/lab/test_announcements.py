"""Tests that a run gets a note if netlink announcements about a node's network were lost."""

from __future__ import annotations

import errno
import socket
import struct
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.lab import announcements, network_changes, network_watch, queue_watch
from orchestrator.lab.announcements import OVERRUN, Announcement

NEWQDISC, NEWNEIGH = 36, 28
NUD_REACHABLE, NUD_FAILED = 0x2, 0x20


class Socket:
    """A netlink socket that returns these datagrams or errors, then blocks."""

    def __init__(self, *replies: bytes | OSError) -> None:
        self.replies = list(replies)
        self.closed = False

    def recv(self, _: int) -> bytes:
        if not self.replies:
            raise BlockingIOError
        reply = self.replies.pop(0)
        if isinstance(reply, OSError):
            raise reply
        return reply

    def close(self) -> None:
        self.closed = True


LOST = OSError(errno.ENOBUFS, "No buffer space available")


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 7) + body


def kinds(*replies: bytes | OSError) -> list[int]:
    kernel: Any = Socket(*replies)
    return [one.kind for one in announcements.read(kernel)]


def test_lost_announcements_leave_a_mark_between_those_that_came() -> None:
    one = message(NEWQDISC, bytes(20))
    assert kinds(one, LOST, one + one) == [NEWQDISC, OVERRUN, NEWQDISC, NEWQDISC]


def test_a_socket_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(OSError, match="bad"):
        kinds(OSError(errno.EBADF, "bad"))


@pytest.mark.parametrize("watch", [queue_watch, network_watch])
@pytest.mark.parametrize("reply", [LOST, OSError(errno.EBADF, "bad"), message(NEWQDISC, b"")])
def test_what_was_lost_is_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, watch: Any, reply: bytes | OSError
) -> None:
    monkeypatch.setattr(announcements, "enter", lambda _: None)
    node = SimpleNamespace(name="a", netns="vnet-x.a", interfaces=(), routes=(), software=())
    warned: list[Any] = []
    lab: Any = SimpleNamespace(
        nodes={"a": node}, links={}, run_dir=tmp_path, plan=SimpleNamespace(events=(), links=()),
        events=SimpleNamespace(warn=warned.append),
    )  # fmt: skip
    kernel: Any = Socket(reply)
    watch.end(lab, {"vnet-x.a": kernel})
    (note,) = warned
    assert note.code == "unread" and not note.suspect and "vnet-x.a" in note.text and kernel.closed


def test_a_removed_neighbour_is_not_said_to_be_set() -> None:
    node: Any = SimpleNamespace(interfaces=(SimpleNamespace(name="eth0"),), routes=())

    def said(state: int) -> str:
        body = struct.pack("=BxxxiHBB", socket.AF_INET, 3, state, 0, 1)
        body += struct.pack("=HH", 8, 1) + bytes((10, 0, 0, 7))
        (change,) = network_changes.changes(node, Announcement(NEWNEIGH, 0, 7, body), lambda _: "eth0")
        return change.text

    assert said(NUD_REACHABLE) == "eth0: neighbour 10.0.0.7 set"
    assert said(NUD_FAILED) == "eth0: neighbour 10.0.0.7 removed"
