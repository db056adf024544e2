"""Tests to which measurement an ICMP packet is assigned: the present one, an earlier one, or that of another
machine.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

import pytest

from orchestrator.lab import traceroute as module
from orchestrator.lab.traceroute import FIRST_ECHO, Traceroute, TracerouteResult, traceroute

IP = bytes([0x45]) + bytes(19)  # a header of 20 bytes
END, ROUTER = "10.0.0.9", "10.0.0.1"
Answer = tuple[bytes, str]


def _reply(echo: bytes) -> bytes:
    return IP + struct.pack("!BBH", 0, 0, 0) + echo[4:]


def _exceeded(echo: bytes) -> bytes:
    return IP + struct.pack("!BBHI", 11, 0, 0, 0) + IP + echo


class Network:
    """Simulates a raw socket: `answer` returns the packets that arrive after an echo request, with their
    senders.
    """

    def __init__(self, answer: Callable[[bytes], list[Answer]]) -> None:
        self._answer = answer
        self._far, self._near = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._senders: list[str] = []

    def fileno(self) -> int:
        return self._near.fileno()

    def setsockopt(self, *_: int) -> None:
        """Does nothing: `answer` decides who answers."""

    def sendto(self, data: bytes, _: object) -> None:
        for packet, sender in self._answer(data):
            self._senders.append(sender)
            self._far.send(packet)

    def recvmsg(self, size: int, _: int) -> tuple[bytes, list[object], int, tuple[str, int]]:
        return self._near.recv(size), [], 0, (self._senders.pop(0), 0)

    def close(self) -> None:
        self._near.close()
        self._far.close()


def _measure(monkeypatch: pytest.MonkeyPatch, answer: Callable[[bytes], list[Answer]]) -> TracerouteResult:
    monkeypatch.setattr(module, "_socket_in", lambda *_: Network(answer))
    (found,) = traceroute([Traceroute("vnet-x.a", END, 1, patience_ns=0)])
    return found


def _number(echo: bytes) -> int:
    return int(struct.unpack("!H", echo[6:8])[0])


def test_answers_to_an_echo_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _measure(
        monkeypatch,
        lambda echo: [(_reply(echo), END)] if _number(echo) >= FIRST_ECHO else [(_exceeded(echo), ROUTER)],
    )
    assert found.hops == {1: ROUTER} and len(found.round_trips_ns) == module.ECHOES


def test_a_late_answer_to_an_earlier_measurement_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier: list[bytes] = []

    def silent(echo: bytes) -> list[Answer]:
        earlier.append(echo)
        return []

    assert _measure(monkeypatch, silent).round_trips_ns == []
    late = [(_reply(echo), END) for echo in earlier]
    found = _measure(monkeypatch, lambda echo: late)
    assert found.hops == {} and found.round_trips_ns == []


def test_only_the_end_of_the_path_answers_an_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that an answer of a router that dropped an echo although its time to live was high means a loop,
    and gives no round trip.
    """
    found = _measure(monkeypatch, lambda echo: [(_exceeded(echo), ROUTER)])
    assert found.hops == {1: ROUTER} and found.round_trips_ns == []
