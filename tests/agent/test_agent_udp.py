"""Tests the agent's datagrams between nodes: requests, fan-out, and the effect of a lossy link."""

from __future__ import annotations

import subprocess

from agent_launcher import Launcher
from agent_roles import SECOND, flow, item, peer, play, records, reply


def server(node: str) -> dict[str, object]:
    return item("udp", node, {"listen": 9000, "to": [], "timeout_ns": 0}, listens=True)


def client(node: str, servers: dict[str, int], *flows: dict[str, object]) -> dict[str, object]:
    to = [peer(name, index, 9000) for name, index in servers.items()]
    return item("udp", node, {"listen": None, "to": to, "timeout_ns": SECOND // 5}, *flows)


def test_requests_and_fan_out_are_accounted_for_receiver_by_receiver(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b", "c", "d"])
    items = [
        server("a"), server("b"),
        client("c", {"a": 0, "b": 1}, flow(0, "request", 50, 1, **reply(1000))),
        client("d", {"a": 0, "b": 1}, flow(1, "push", 100, 1), flow(2, "stream", 20, 1)),
    ]  # fmt: skip
    totals = play(launcher, items, 1.3)
    sent, got = records(launcher.directory, "S"), records(launcher.directory, "R")
    counts = [[row[8] for row in sent if row[1] == str(number)] for number in range(3)]
    assert [len(c) for c in counts] == [50, 100, 20]
    assert [set(c) for c in counts] == [{"settled"}, {"sent"}, {"sent"}]
    for number, receiver, leg, count in [
        ("0", "a", "0", 50), ("0", "b", "0", 50), ("0", "a", "1", 50), ("0", "b", "1", 50),
        ("1", "a", "0", 100), ("1", "b", "0", 100), ("2", "b", "0", 20),
    ]:  # fmt: skip
        rows = [row for row in got if (row[1], row[3], row[4]) == (number, receiver, leg)]
        assert sorted(int(row[2]) for row in rows) == list(range(count))
    assert (totals["scheduled"], totals["settled"], totals["pending"]) == (170, 50, 0)
    assert totals["clients"] == 2, "who listens is no client"


def test_what_is_lost_was_sent(launcher: Launcher) -> None:
    """Shows that messages count as sent although nobody receives them: the server's port is connected to no
    bridge.
    """
    launcher.lab_up(["a", "c"])
    shut = ["ip", "-n", launcher.core, "link", "set", "p0", "nomaster"]
    subprocess.run(shut, check=True)
    totals = play(launcher, [server("a"), client("c", {"a": 0}, flow(0, "push", 50, 1))], 1.1)
    assert totals["received"] == 0
    # ARP does not find the absent receiver, so the kernel accepts the datagrams and drops them.
    assert {row[8] for row in records(launcher.directory, "S")} <= {"sent", "unsent"}


def test_a_port_that_is_taken_is_refused_when_armed(launcher: Launcher) -> None:
    launcher.lab_up(["a"])
    answer = launcher.ask("workload", items=[server("a"), server("a")])
    assert not answer["ok"] and "software udp: listen: port 9000" in answer["error"]
    launcher.do("workload", items=[server("a")])
