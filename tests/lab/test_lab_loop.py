"""Descriptors that are ready in the same turn: one's call may take another away, or serve it first."""

from __future__ import annotations

import os
import selectors
import socket

import pytest

from orchestrator.lab.clock import SECOND, MonotonicClock
from orchestrator.lab.loop import Calls, Loop


@pytest.fixture
def pipes() -> list[tuple[int, int]]:
    """Two, each with a byte to read."""
    made = [os.pipe() for _ in range(2)]
    for _, write in made:
        os.write(write, b"x")
    return made


def test_what_an_earlier_call_took_away_is_not_called(pipes: list[tuple[int, int]]) -> None:
    calls, called = Calls(), []

    def serve(mine: int, other: int) -> None:
        called.append(mine)
        calls.unregister(other)

    first, second = pipes[0][0], pipes[1][0]
    calls.register(first, selectors.EVENT_READ, lambda: serve(first, second))
    calls.register(second, selectors.EVENT_READ, lambda: serve(second, first))
    assert calls.turn(0)
    assert len(called) == 1


def test_a_number_that_is_given_out_again_in_the_turn_is_another_descriptor(
    pipes: list[tuple[int, int]],
) -> None:
    calls, called = Calls(), []

    def replace(mine: int, other: int) -> None:
        called.append(mine)
        calls.unregister(other)
        os.close(other)
        ours, _ = os.pipe()  # the lowest free number: the one just closed
        assert ours == other
        calls.register(ours, selectors.EVENT_READ, lambda: called.append("another"))

    first, second = pipes[0][0], pipes[1][0]
    calls.register(first, selectors.EVENT_READ, lambda: replace(first, second))
    calls.register(second, selectors.EVENT_READ, lambda: replace(second, first))
    calls.turn(0)
    assert len(called) == 1


def test_a_call_that_waits_serves_the_others_once() -> None:
    loop = Loop(MonotonicClock())
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("")  # a name of its own
    listener.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(listener.getsockname())
    accepted: list[socket.socket] = []
    read, write = os.pipe()
    os.write(write, b"x")

    def request() -> None:
        os.read(read, 1)
        loop.until(loop.clock.now_ns() + 5 * SECOND, "a client", lambda: bool(accepted))

    loop.watch(read, request)  # first: the turn lists it before the listener
    loop.watch(
        listener.fileno(), lambda: accepted.append(listener.accept()[0])
    )  # would block the second time
    listener.settimeout(1)
    loop.until(loop.clock.now_ns() + 5 * SECOND, "a client", lambda: bool(accepted))
    assert len(accepted) == 1
