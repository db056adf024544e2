"""Tests the accounting helpers of all languages against files as vNET writes them: each line that a helper
writes, how it waits for the start, and how it refuses requests that it cannot carry out.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from building import build, missing

from vnet.accounting import FILES

LANGUAGES = sorted(FILES)
SIZE = 40
EVERY_NS = 20_000_000


@pytest.fixture(scope="module", params=LANGUAGES)
def program(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Sequence[str]]:
    """Returns the directory of a built program and the command that starts it there."""
    if why := missing(request.param):
        pytest.skip(why)
    place = tmp_path_factory.mktemp(request.param)
    return place, build(request.param, place)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def told(t0_ns: int | None, times: list[int] | None) -> dict[str, Any]:
    """Returns vNET's statement to a program that sends two flows, each to its own receiver, and receives
    messages.
    """
    offset = time.time_ns() - time.monotonic_ns()
    flows = [
        {
            "number": number,
            "name": f"a flow, {{number}} \\ {number}" if times else "long",
            "class": "c",
            "pattern": "push",
            "to": [{"endpoint": "there", "address": "127.0.0.1"}],
            "payload": {"kind": "own", "bytes": SIZE + number},
            "reply": None,
            "schedule": {"rates": [{"from_ns": 0, "per_s": 10.0}]},
            "times_ns": times and [at + number for at in times],
        }
        for number in (3, 12)
    ]
    receives = [{"number": 4, "name": "other", "sender": "x", "payload": {}, "reply": None}]
    return {
        "endpoint": "here-own",
        "t0_ns": t0_ns,
        "clock_offset_ns": offset,
        "sends": flows,
        "receives": receives,
    }


class Node:
    """The two files of a program in a directory, and the program."""

    def __init__(self, program: tuple[Path, Sequence[str]], at: Path, first: dict[str, Any]) -> None:
        self.place, self.command = program
        self.flows, self.records = at / "flows", at / "records"
        self.flows.write_text(json.dumps(first, indent=2))
        self.records.write_text("")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        own = {"VNET_FLOWS": str(self.flows), "VNET_RECORDS": str(self.records)}
        return subprocess.Popen(
            [*self.command, *arguments],
            cwd=self.place,
            env=os.environ | own,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def lines(self) -> list[list[str]]:
        return [line.split(",") for line in self.records.read_text().splitlines()]


def test_a_sender_waits_for_the_start_and_records_each_message(
    program: tuple[Path, Sequence[str]], tmp_path: Path
) -> None:
    times = [number * EVERY_NS for number in range(5)]
    node = Node(program, tmp_path, told(None, times))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker:
        taker.bind(("127.0.0.1", 0))
        taker.settimeout(60)
        sender = node.start("send", str(taker.getsockname()[1]))
        time.sleep(0.5)
        assert node.lines() == [] and sender.poll() is None
        t0_ns = time.time_ns() + 200_000_000
        other = node.flows.with_suffix(".new")
        other.write_text(json.dumps(told(t0_ns, times)))
        other.rename(node.flows)
        got = [taker.recv(1000) for _ in range(10)]
    said, errors = sender.communicate(timeout=60)
    assert sender.returncode == 0, said + errors
    assert [(len(one), one.split()[:2]) for one in got] == [
        (SIZE + flow, [b"%d" % flow, b"%d" % seq]) for seq in range(5) for flow in (3, 12)
    ]
    for line, (at, seq, flow) in zip(
        node.lines(), ((at, seq, flow) for seq, at in enumerate(times) for flow in (3, 12)), strict=True
    ):
        scheduled = t0_ns + at + flow
        assert line[:5] == ["S", str(flow), str(seq), str(SIZE + flow), str(scheduled)]
        assert line[6:] == ["0", "1", "sent"] and scheduled <= int(line[5]) < time.time_ns()


def test_a_receiver_records_arrivals(program: tuple[Path, Sequence[str]], tmp_path: Path) -> None:
    node, port = Node(program, tmp_path, told(None, [])), free_port()
    taker = node.start("take", str(port))
    try:
        assert taker.stdout is not None and taker.stdout.readline() == "listening\n"
        before = time.time_ns()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for seq in (0, 7):
                sender.sendto(b"4 %d ...." % seq, ("127.0.0.1", port))
        for _ in range(600):
            if len(node.lines()) == 3:
                break
            time.sleep(0.05)
        first, *arrived = node.lines()
        assert first[:3] == ["C", "here-own", "listening"] and int(first[3]) <= before
        assert [line[:5] for line in arrived] == [["R", "4", seq, "here-own", "0"] for seq in ("0", "7")]
        assert all(before - 1_000_000 <= int(line[5]) < time.time_ns() and line[6] == "0" for line in arrived)
    finally:
        taker.kill()
        taker.communicate()


def test_what_it_cannot_do_is_refused(program: tuple[Path, Sequence[str]], tmp_path: Path) -> None:
    node = Node(program, tmp_path, told(time.time_ns(), None))
    sender = node.start("send", "9")
    _, errors = sender.communicate(timeout=60)
    assert sender.returncode == 1 and "long has no list of times" in errors and node.lines() == []
    plain = {name: value for name, value in os.environ.items() if not name.startswith("VNET_")}
    done = subprocess.run(
        [*node.command, "send", "9"], cwd=node.place, env=plain, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "`flows:` or `receives: true`" in done.stderr
