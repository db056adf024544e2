"""Tests the agent's messages over TCP: many clients of one server, fan-out, and a server that starts late."""

from __future__ import annotations

from typing import Any

from agent_launcher import Launcher
from agent_roles import SECOND, flow, item, peer, play, records, reply

COMMON = {"nodelay": True, "reconnect_ns": SECOND // 10, "timeout_ns": SECOND}


def server(node: str) -> dict[str, Any]:
    return item("tcp", node, {"listen": 9001, "to": [], **COMMON}, listens=True)


def client(node: str, servers: dict[str, int], *flows: dict[str, Any], **more: Any) -> dict[str, Any]:
    to = [peer(name, index, 9001) for name, index in servers.items()]
    return item("tcp", node, {"listen": None, "to": to, **COMMON, **more}, *flows)


def test_one_server_takes_the_requests_of_many_clients(launcher: Launcher) -> None:
    names = ["s", *(f"c{i}" for i in range(30))]
    launcher.lab_up(names)
    clients = [client(n, {"s": 0}, flow(i, "request", 20, 1, **reply(2000))) for i, n in enumerate(names[1:])]
    totals = play(launcher, [server("s"), *clients], 1.3)
    sent, got = records(launcher.directory, "S"), records(launcher.directory, "R")
    assert len(sent) == 30 * 20 and {row[8] for row in sent} == {"settled"}
    for leg in ("0", "1"):
        rows = [(row[1], row[2]) for row in got if row[3:5] == ["s", leg]]
        assert sorted(rows) == sorted((row[1], row[2]) for row in sent)
    assert (totals["connected"], totals["clients"], totals["settled"]) == (0, 30, 600)


def test_a_second_scenario_counts_its_own(launcher: Launcher) -> None:
    launcher.lab_up(["s", "c"])
    for name in ("first", "second"):
        items = [server("s"), client("c", {"s": 0}, flow(0, "request", 20, 0.5, **reply(30)))]
        (launcher.directory / name).mkdir()
        totals = play(launcher, items, 0.8, launcher.directory / name / "messages.csv")
        assert (totals["clients"], totals["scheduled"], totals["settled"]) == (1, 10, 10), name
        assert launcher.do("finish")["totals"] == totals
        assert launcher.do("counts")["totals"] == {"settled": 10, "received": 20}


def test_pushes_wait_for_a_server_and_reach_all_of_them(launcher: Launcher) -> None:
    launcher.lab_up(["a", "b", "c"])
    launcher.do("messages", path=str(launcher.directory / "messages.csv"))
    launcher.do("workload", items=[client("c", {"a": 0, "b": 1}, flow(0, "push", 100, 0.6))])
    t0_ns = launcher.do("clock")["now_ns"]
    launcher.do("go", t0_ns=t0_ns)
    totals = launcher.do("pending")["totals"]
    assert totals["received"] == 0
    play(launcher, [server("a"), server("b")], 1.2)
    sent, got = records(launcher.directory, "S"), records(launcher.directory, "R")
    assert len(sent) == 60 and {row[8] for row in sent} == {"sent"}
    assert sorted(row[3] for row in got) == ["a"] * 60 + ["b"] * 60
    # These are the states of both connections, in order.
    what = [row[2] for row in records(launcher.directory, "C") if row[1] == "c"]
    first = what.index("connected")
    assert "failed" in what[:first] and what[-1] == "disconnected", what
    assert set(what[first:]) == {"connected", "disconnected"}, what


def test_a_port_that_is_taken_is_refused_when_armed(launcher: Launcher) -> None:
    launcher.lab_up(["a"])
    answer = launcher.ask("workload", items=[server("a"), server("a")])
    assert not answer["ok"] and "software tcp: listen: port 9001" in answer["error"]
