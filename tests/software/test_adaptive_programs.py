"""Tests the programs of adaptive messages on the loopback: every message is recorded at both ends, and a
sender without a connection still sends datagrams.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.software.adaptive import planning

POLICY = {"probe_every_ns": 20_000_000, "window_ns": 10**9, "loss": 0.05, "queue_ns": 10**9, "stay_ns": 0}
MESSAGES = 60


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def program(place: Path, name: str, settings: dict[str, object], told: dict[str, object]) -> Iterator[Path]:
    """Runs a program in a directory of its own until the block ends; yields the path of its records."""
    own = place / name
    own.mkdir()
    for file in (*planning.PROGRAMS.glob("*.py"), planning.ACCOUNT):
        shutil.copy(file, own)
    (own / "settings.json").write_text(json.dumps(settings))
    (own / "flows.json").write_text(json.dumps({"endpoint": name, "clock_offset_ns": 0, **told}))
    env = {**os.environ, "VNET_FLOWS": str(own / "flows.json"), "VNET_RECORDS": str(own / "records")}
    running = subprocess.Popen(
        [sys.executable, own / f"{name}.py", own / "settings.json"], env=env, stdout=subprocess.PIPE
    )
    try:
        assert running.stdout is not None and running.stdout.readline() == b"vnet: ready\n"
        yield own / "records"
    finally:
        running.kill()
        running.communicate()


def records(file: Path, kind: str) -> list[list[str]]:
    return [line.split(",")[1:] for line in file.read_text().splitlines() if line.startswith(f"{kind},")]


def sends(use: str, port: int) -> tuple[dict[str, object], dict[str, object]]:
    """Returns the settings of a sender and its flow: a message every 10 ms from now on."""
    flow = {
        "number": 4,
        "payload": {"bytes": 200},
        "times_ns": [k * 10_000_000 for k in range(MESSAGES)],
        "stop_ns": MESSAGES * 10_000_000,
    }
    settings: dict[str, object] = {"use": use, "to": [["127.0.0.1", port]], "policy": POLICY}
    return settings, {"t0_ns": time.monotonic_ns() + 2 * 10**9, "sends": [flow]}


def settled(file: Path, count: int) -> None:
    """Waits until a sender has recorded all messages, at most for a minute."""
    over = time.monotonic() + 60
    while len(records(file, "S")) < count:
        assert time.monotonic() < over, "a message without a record"
        time.sleep(0.05)


@pytest.mark.parametrize(("use", "copies"), [("stream", 1), ("once", 1), ("twice", 2), ("adaptive", 1)])
def test_each_message_is_recorded_at_both_ends(tmp_path: Path, use: str, copies: int) -> None:
    port = free_port()
    with program(tmp_path, "receiver", {"host": "127.0.0.1", "port": port}, {"sends": []}) as received:
        with program(tmp_path, "sender", *sends(use, port)) as sent:
            settled(sent, MESSAGES)
            time.sleep(0.2)  # the last message is still on its way
        came = records(received, "R")
    gone = records(sent, "S")
    assert sorted(int(one[1]) for one in gone) == list(range(MESSAGES))
    assert {(one[0], one[2], one[6], one[7]) for one in gone} == {("4", "200", str(copies), "sent")}
    assert len(came) == MESSAGES * copies and {one[2] for one in came} == {"receiver"}
    assert sum(int(one[5]) for one in came) == MESSAGES * (copies - 1), "the second one is a copy"
    assert [one[1] for one in records(sent, "P")] == ["stream" if use == "adaptive" else use]


def test_without_a_connection_an_adaptive_sender_goes_on(tmp_path: Path) -> None:
    """Shows that an adaptive sender sends datagrams while nobody listens: connections fail, and probes do not
    return.
    """
    with program(tmp_path, "sender", *sends("adaptive", free_port())) as sent:
        settled(sent, MESSAGES)
        assert {one[1] for one in records(sent, "C")} == {"connecting", "failed"}
        assert {one[1] for one in records(sent, "P")} >= {"stream"}


REFUSED_AT_ONCE = """
from types import SimpleNamespace
from sender import Stream
stream = Stream(SimpleNamespace(step=lambda what, _="": print(what)), ("255.255.255.255", 7100))
stream.open(2 * 10**9)
stream.flush()
"""


def test_a_try_that_fails_at_once_is_no_connection(tmp_path: Path) -> None:
    """Shows that an address whose TCP connection is refused at once counts as one without connection, like an
    address without a route.
    """
    for file in (*planning.PROGRAMS.glob("*.py"), planning.ACCOUNT):
        shutil.copy(file, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", REFUSED_AT_ONCE], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.split() == ["connecting", "failed"], done.stderr


def test_a_receiver_closes_a_connection_that_carries_something_else(tmp_path: Path) -> None:
    port = free_port()
    with program(tmp_path, "receiver", {"host": "127.0.0.1", "port": port}, {"sends": []}) as received:
        for foreign in (bytes(64), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as one:
                one.sendall(foreign)
                assert one.recv(1) == b""
        assert records(received, "R") == []
