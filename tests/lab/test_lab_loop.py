"""Tests descriptors that become ready in the same turn of the event loop: the callback of one may remove
another or serve it first.
"""

from __future__ import annotations

import os
import selectors
import socket
from itertools import pairwise

import pytest

from orchestrator.lab.clock import SECOND, JumpingClock, MonotonicClock
from orchestrator.lab.loop import LONGEST_WAIT_NS, SHORTEST_WAIT_NS, Calls, Loop


@pytest.fixture
def pipes() -> list[tuple[int, int]]:
    """Returns two pipes, each with a byte to read."""
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
        ours, _ = os.pipe()  # the new pipe gets the lowest free number, which is that of the closed one
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
    listener.bind("")  # the kernel chooses a free name
    listener.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(listener.getsockname())
    accepted: list[socket.socket] = []
    read, write = os.pipe()
    os.write(write, b"x")

    def request() -> None:
        os.read(read, 1)
        loop.until(loop.clock.now_ns() + 5 * SECOND, "a client", lambda: bool(accepted))

    loop.watch(read, request)  # registered first, so the turn lists it before the listener
    loop.watch(listener.fileno(), lambda: accepted.append(listener.accept()[0]))  # a second call would block
    listener.settimeout(1)
    loop.until(loop.clock.now_ns() + 5 * SECOND, "a client", lambda: bool(accepted))
    assert len(accepted) == 1


def test_a_probe_that_nothing_announces_is_asked_soon_and_then_ever_less_often() -> None:
    loop = Loop(JumpingClock())
    asked: list[int] = []

    def probe() -> bool:
        asked.append(loop.clock.now_ns())
        return len(asked) == 20

    loop.until(asked_until := loop.clock.now_ns() + 60 * SECOND, "twenty looks", probe)
    assert asked[-1] < asked_until
    waits = [later - earlier for earlier, later in pairwise(asked)]
    assert waits[0] == SHORTEST_WAIT_NS
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_WAIT_NS
