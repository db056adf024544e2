"""Tests a running lab on the live page: the requests to the lab and their times, changes, shells and logs."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
from page_lab import ORIGIN, WS, StandIn, served, until, wait_for
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect


def test_nothing_is_asked_of_a_lab_that_nobody_looks_at(lab: StandIn) -> None:
    client, watches = served(lab.run_dir.parents[1])
    assert lab.asked == []
    with client, client.websocket_connect(WS + "/ws/lab/shown", headers=ORIGIN) as first:
        frames = until(first, "sample")
        assert lab.open == 1
        with client.websocket_connect(WS + "/ws/lab/shown", headers=ORIGIN) as second:
            until(second, "network")
            assert lab.open == 1, "two viewers, one connection"
        first.close()
        wait_for(lambda: lab.open == 0 and watches.open == [])
        asked = len(lab.asked)
        time.sleep(0.2)  # ten intervals
        assert len(lab.asked) == asked
    assert {"plan", "status", "network", "sample", "warning"} <= {f["kind"] for f in frames}
    assert {r["op"] for r in lab.asked} == {"watch", "status", "fetch", "inspect", "measure"}


def test_frames_follow_the_counters(lab: StandIn, client: TestClient) -> None:
    raw = lab.run_dir / "raw"
    (raw / "nodes.csv").write_text(
        "t_ns,node,cpu_ns,rx_bytes,rx_packets,tx_bytes,tx_packets,memory_bytes\n"
        "1000000000,broker,0,0,0,0,0,5\n2000000000,broker,500000000,1000,1,0,0,7\n"
    )
    with client, client.websocket_connect(WS + "/ws/lab/shown", headers=ORIGIN) as socket:
        first = until(socket, "sample")[-1]
        assert first["nodes"]["broker"] == {"cpu": 0.5, "memory_bytes": 7, "rx_bps": 8000.0, "tx_bps": 0.0}
        with (raw / "links.csv").open("a") as file:
            file.write("1000000000,wan,forward,0,0,0,0,0,0\n2000000000,wan,forward,125000,90,10,0,42,1\n")
        while not (last := until(socket, "sample")[-1])["links"]:
            pass
        assert last["links"]["wan"]["forward"] == {
            "bps": 1e6,
            "pps": 90.0,
            "dropped": 0.1,
            "backlog_bytes": 42,
        }


def test_a_drawing_is_refused_until_the_lab_has_described_its_network(lab: StandIn) -> None:
    client, watches = served(lab.run_dir.parents[1])
    address = "/api/lab/shown/drawing"
    with client, client.websocket_connect(WS + "/ws/lab/shown", headers=ORIGIN) as socket:
        until(socket, "network")
        watch = watches.of("shown")
        assert watch is not None and client.get(address).status_code == 200
        watch._found = None
        early = client.get(address)
    assert early.status_code == 409 and "not yet described its network" in early.text


def test_groups_are_unfolded_for_who_looks(lab: StandIn, client: TestClient) -> None:
    address = "/api/lab/shown/drawing"
    assert "no page watches" in client.get(address).text
    with client, client.websocket_connect(WS + "/ws/lab/shown", headers=ORIGIN) as socket:
        folded = until(socket, "network")[-1]["drawing"]
        asked = [r["op"] for r in lab.asked].count("inspect")
        wide = client.get(address, params={"unfold": "*"}).json()
        assert client.get(address, params={"unfold": "none of that name"}).json() == folded
        assert [r["op"] for r in lab.asked].count("inspect") == asked, "the lab is not asked for it"
    groups = [box for box in folded["boxes"] if box["kind"] == "group"]
    assert [box["name"] for box in wide["boxes"] if box["kind"] == "frame"] == [box["name"] for box in groups]
    inside = [box["name"] for box in wide["boxes"] if box["inside"] is not None]
    assert inside == [name for box in groups for name in box["members"]]


def test_a_lab_that_goes_away_is_said(lab: StandIn, client: TestClient) -> None:
    with client, client.websocket_connect(WS + "/ws/lab/none", headers=ORIGIN) as socket:
        assert "no such lab runs here" in until(socket, "gone")[-1]["text"]
    (lab.run_dir.parents[2] / "s" / "shown" / "control.sock").unlink()
    with client, client.websocket_connect(WS + "/ws/lab/shown", headers=ORIGIN) as socket:
        assert "no lab process answers" in until(socket, "gone")[-1]["text"]


def test_a_lab_of_another_version_is_said_and_hides_no_other(lab: StandIn, client: TestClient) -> None:
    lab.answer = lambda request: {"lab": "shown", "ready": True}  # type: ignore[method-assign]
    (row,) = client.get("/api/overview").json()["labs"]
    assert "another version runs it (its status has no 'nodes'); vnet down shown ends it" in row["state"]
    with client, client.websocket_connect(WS + "/ws/lab/shown", headers=ORIGIN) as socket:
        assert "a lab of another version: its answer has no 'size'" in until(socket, "gone")[-1]["text"]


def test_a_lab_that_stands_still_is_said_and_waited_for(lab: StandIn, client: TestClient) -> None:
    with client, client.websocket_connect(WS + "/ws/lab/shown", headers=ORIGIN) as socket:
        until(socket, "sample")
        lab.goes_on.clear()
        assert "the lab has not answered for" in until(socket, "silent")[-1]["text"]
        lab.goes_on.set()
        until(socket, "sample")


def test_a_lab_that_dies_while_watched_is_said(lab: StandIn, client: TestClient) -> None:
    for dies in (True, False):
        with client, client.websocket_connect(WS + "/ws/lab/shown", headers=ORIGIN) as socket:
            until(socket, "sample")
            lab.dies = dies
            if dies:
                assert "the lab process is gone" in until(socket, "gone")[-1]["text"]
                with pytest.raises(WebSocketDisconnect):
                    socket.receive_json()
        lab.dies = False
    wait_for(lambda: lab.open == 0)


def test_a_link_changes_by_the_operation_of_the_command_line(lab: StandIn, client: TestClient) -> None:
    wanted = {"link": "wan", "changes": {"delay": "50 ms", "loss": "1 %"}, "sides": ["forward"]}
    lab.answer, before = (
        (
            lambda r: (
                {**before(r)}
                if r["op"] != "link"
                else {"link": "wan", "down": False, "forward": r["forward"]}
            )
        ),
        lab.answer,
    )  # type: ignore[method-assign]
    answer = client.post("/api/lab/shown/link", json=wanted, headers=ORIGIN)
    assert answer.status_code == 200, answer.text
    (sent,) = [r for r in lab.asked if r["op"] == "link"]
    assert (
        sent["forward"]["delay_ns"] == 50_000_000
        and sent["forward"]["loss"] == 0.01
        and "reverse" not in sent
    )
    assert sent["by"].endswith("on the live page")
    assert answer.json()["snippet"].startswith("impair: wan, forward: {delay: 50 ms")


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"link": "wan", "changes": {"delay": "50"}}, 'delay: "50"'),
        ({"link": "wan", "changes": {"dealy": "50 ms"}}, "dealy: no quantity"),
        ({"link": "nowhere", "changes": {"delay": "50 ms"}}, "nowhere"),
        ({"link": "wan"}, "nothing to change"),
        ({"link": "wan", "up": True, "down": True}, "contradict"),
        ({"link": "wan", "changes": "all"}, "give changes by name"),
        ([], "not an object"),
    ],
)
def test_a_change_that_is_none_is_refused_with_its_reason(
    client: TestClient, lab: StandIn, wanted: Any, said: str
) -> None:
    answer = client.post("/api/lab/shown/link", json=wanted, headers=ORIGIN)
    assert answer.status_code == 409 and said in answer.text
    assert not [r for r in lab.asked if r["op"] == "link"]


def test_a_shell_is_a_terminal_on_the_node(lab: StandIn, client: TestClient) -> None:
    with client, client.websocket_connect(WS + "/ws/lab/shown/shell/broker", headers=ORIGIN) as socket:
        assert socket.receive_bytes() == b"$ "
        socket.send_text('{"rows": 30, "cols": 100}')
        assert socket.receive_bytes() == b""
        socket.send_text("no size")
        socket.send_text('{"rows": 0, "cols": 999999999}')
        socket.send_bytes(b"exit")
        assert socket.receive_bytes() == b"exit"
        assert socket.receive_text() == "ended with status 3"
    asked = {r["op"]: r for r in lab.asked}
    assert asked["exec"]["node"] == "broker" and asked["exec"]["tty"] == {"rows": 24, "cols": 80}
    assert (asked["resize"]["rows"], asked["resize"]["cols"]) == (30, 100)
    assert len([r for r in lab.asked if r["op"] == "resize"]) == 1
    wait_for(lambda: lab.open == 0)


def test_a_shell_that_says_too_much_ends_and_not_the_server(lab: StandIn, client: TestClient) -> None:
    with client, client.websocket_connect(WS + "/ws/lab/shown/shell/flood", headers=ORIGIN) as socket:
        assert "more than this page could take" in socket.receive_text()
    wait_for(lambda: lab.open == 0)


def test_a_shell_that_the_page_leaves_ends(lab: StandIn, client: TestClient) -> None:
    with client, client.websocket_connect(WS + "/ws/lab/shown/shell/broker", headers=ORIGIN) as socket:
        socket.receive_bytes()
    wait_for(lambda: lab.open == 0)


def test_logs_come_from_the_lab_and_from_nowhere_else(lab: StandIn, client: TestClient) -> None:
    (lab.run_dir / "raw" / "logs" / "broker.program.log").write_text("0123456789")

    def fetched(path: str, offset: str = "0") -> Any:
        return client.get("/api/lab/shown/fetch", params={"path": path, "offset": offset})

    log = "raw/logs/broker.program.log"
    assert (
        base64.b64decode(fetched(log, "-4").json()["data"]) == b"6789"
        and fetched(log, "-4").json()["offset"] == 6
    )
    assert base64.b64decode(fetched(log, "-99").json()["data"]) == b"0123456789"
    assert fetched("raw/logs/none.log").json()["size"] is None
    for path, offset in (("../../../secret", "0"), ("/etc/passwd", "0"), (log, "x"), ("", "0")):
        assert fetched(path, offset).status_code == 409
    assert client.get("/api/lab/none/fetch", params={"path": log}).status_code == 409


def test_a_lab_in_virtual_time_is_read_from_its_files_and_not_asked(lab: StandIn, client: TestClient) -> None:
    about = lab.run_dir.parents[2] / "s" / "shown" / "lab.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "time": "virtual"}))
    lines = [{"event": "phase", "phase": "hold", "done": 1, "total": 2, "text": "t"}, {"event": "ready"}]
    (lab.run_dir / "raw" / "progress.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    with client, client.websocket_connect(WS + "/ws/lab/shown", headers=ORIGIN) as socket:
        frames = until(socket, "sample")
        with (lab.run_dir / "raw" / "progress.jsonl").open("a") as file:
            file.write('{"event": "end", "status": 0}\n')
        assert until(socket, "gone")[-1]["text"] == "the lab has ended"
    assert {"plan", "status", "network", "phase"} <= {f["kind"] for f in frames}
    assert lab.asked == []
