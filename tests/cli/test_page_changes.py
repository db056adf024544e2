"""Tests, on the live page, nodes that are added and removed, captures and consoles."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest
from page_lab import ORIGIN, WS, StandIn, served
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect


def asked(lab: StandIn, op: str) -> list[dict[str, Any]]:
    return [one for one in lab.asked if one["op"] == op]


def test_nodes_are_added_as_clones_of_their_group(lab: StandIn, client: TestClient) -> None:
    group = "client"
    answer = client.post(
        "/api/lab/shown/add", json={"group": group, "count": 2, "idle": True}, headers=ORIGIN
    )
    assert answer.status_code == 200, answer.text
    names = [one["node"]["name"] for one in asked(lab, "add")]
    assert answer.json()["added"] == names and len(set(names)) == 2
    assert {one["node"]["group"] for one in asked(lab, "add")} == {group}
    assert all(one["by"].endswith("on the live page") for one in asked(lab, "add"))


@pytest.mark.parametrize(
    ("what", "wanted", "said"),
    [
        ("add", {"group": "nobody"}, "none of that name"),
        ("add", {"group": "client"}, "takes part in the scenario"),
        ("add", {"group": "client", "count": 0}, "count from 1 to 100"),
        ("add", {"group": "client", "count": "2"}, "count from 1 to 100"),
        ("remove", {"nodes": []}, "give nodes"),
        ("remove", {"nodes": "broker"}, "give nodes"),
    ],
)
def test_what_cannot_be_added_or_removed_is_refused(
    lab: StandIn, client: TestClient, what: str, wanted: Any, said: str
) -> None:
    answer = client.post(f"/api/lab/shown/{what}", json=wanted, headers=ORIGIN)
    assert answer.status_code == 409 and said in answer.text
    assert not asked(lab, what)


def test_a_body_that_is_nested_too_deeply_is_a_bad_request(lab: StandIn, client: TestClient) -> None:
    headers = {**ORIGIN, "Content-Type": "application/json"}
    answer = client.post("/api/lab/shown/add", content="[" * 60_000, headers=headers)
    assert answer.status_code == 400 and "nested too deeply" in answer.text


def test_a_body_in_chunks_is_refused_whatever_length_it_states(lab: StandIn, client: TestClient) -> None:
    """Shows that a body without end is not read: of two lengths, HTTP/1.1 takes that of the chunks."""
    headers = {
        **ORIGIN,
        "Content-Type": "application/json",
        "Content-Length": "2",
        "Transfer-Encoding": "chunked",
    }
    answer = client.post("/api/lab/shown/add", content=b"{}", headers=headers)
    assert answer.status_code == 413 and "of stated length" in answer.text


def test_nodes_are_removed_by_name(lab: StandIn, client: TestClient) -> None:
    assert client.post("/api/lab/shown/remove", json={"nodes": ["broker"]}, headers=ORIGIN).status_code == 200
    assert [one["nodes"] for one in asked(lab, "remove")] == [["broker"]]


def test_a_capture_is_turned_on_and_offered_as_a_capture_point(lab: StandIn, client: TestClient) -> None:
    wanted = {"action": "on", "at": "node broker", "filter": "tcp"}
    answer = client.post("/api/lab/shown/capture", json=wanted, headers=ORIGIN).json()
    assert answer["capture"] == 'node-broker: {at: node broker, filter: "tcp"}'
    (sent,) = asked(lab, "capture")
    assert (sent["at"], sent["filter"], sent["by"].split(" ", 1)[1]) == (
        "node broker",
        "tcp",
        "on the live page",
    )


def test_a_capture_is_downloaded_as_far_as_it_is(lab: StandIn, client: TestClient) -> None:
    data = bytes(range(256)) * 3000  # the page reads it in three parts
    (lab.run_dir / "pcap").mkdir(exist_ok=True)
    (lab.run_dir / "pcap" / "wan.pcap").write_bytes(data)
    answer = client.get("/api/lab/shown/capture/wan")
    assert answer.content == data and 'filename="wan.pcap"' in answer.headers["content-disposition"]
    assert client.get("/api/lab/shown/capture/none").status_code == 404
    assert client.get("/api/lab/shown/capture/..%2Fplan").status_code == 404
    assert client.get("/api/lab/none/capture/wan").status_code == 409


def test_a_console_is_the_machines_serial_line(lab: StandIn, client: TestClient) -> None:
    there = lab.run_dir.parents[2] / "s" / "shown" / "vm" / "broker"
    there.mkdir(parents=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(there / "console.sock"))
    listener.listen()

    def machine() -> None:
        line, _ = listener.accept()
        with line:
            line.sendall(b"login: ")
            line.sendall(line.recv(99).upper())

    threading.Thread(target=machine, daemon=True).start()
    with client, client.websocket_connect(WS + "/ws/lab/shown/console/broker", headers=ORIGIN) as page:
        assert page.receive_bytes() == b"login: "
        page.send_bytes(b"root")
        assert page.receive_bytes() == b"ROOT"
        assert page.receive_text() == "the console is closed"
    listener.close()
    with client, client.websocket_connect(WS + "/ws/lab/shown/console/broker", headers=ORIGIN) as page:
        assert "does not run, or another console is connected" in page.receive_text()


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        ({"mtu": "1400"}, {"mtu": 1400}),
        (
            {"cpu_limit": "0.5 cores", "cpu_reserve": "100 MHz"},
            {"cpu_limit_cores": 0.5, "cpu_reserve_mhz": 100},
        ),
        ({"hostname": "first"}, {"hostname": "first"}),
    ],
)
def test_what_vnet_set_changes_the_page_does(
    lab: StandIn, client: TestClient, wanted: dict[str, str], sent: dict[str, Any]
) -> None:
    answer = client.post("/api/lab/shown/set", json={"nodes": ["broker"], **wanted}, headers=ORIGIN)
    assert answer.status_code == 200 and answer.json()["note"].startswith("broker: "), answer.text
    (one,) = asked(lab, "set")
    assert {key: one[key] for key in one if key not in ("id", "op", "by", "nodes")} == sent
    assert one["by"].endswith("on the live page")


@pytest.mark.parametrize(
    ("what", "wanted", "said"),
    [
        ("set", {"nodes": ["broker"]}, "nothing to change"),
        ("set", {"nodes": ["broker"], "mtu": "9 kB"}, "mtu: "),
        ("set", {"nodes": ["broker"], "mtu": "12"}, "mtu: 12 is not in the range"),
        ("set", {"nodes": ["broker"], "cpu_limit": "half"}, 'cpu_limit: "half"'),
        ("set", {"nodes": ["broker", "utility"], "hostname": "x"}, "hostname: of one node"),
        ("set", {"nodes": ["broker"], "hostname": "a b"}, "hostname: of one node"),
        ("snapshot", {"nodes": ["broker"], "action": "keep"}, "snapshot or revert"),
        ("link", {"link": "wan", "changes": {"distribution": "flat"}}, "distribution: 'flat' is not one of"),
        ("link", {"link": "wan", "changes": {"limit": "many"}}, "limit: 'many' is not a valid integer"),
        ("link", {"link": "wan", "class": {"name": "voice", "ceiling": "1 Mbit/s"}}, "its classes: none"),
        ("link", {"link": "wan", "class": {"name": "voice"}}, "class: give its name, and what changes"),
        ("link", {"link": "wan", "class": {"name": "voice", "weight": "1"}}, "class: give its name"),
    ],
)
def test_settings_that_are_none_are_refused_with_their_rule(
    lab: StandIn, client: TestClient, what: str, wanted: Any, said: str
) -> None:
    answer = client.post(f"/api/lab/shown/{what}", json=wanted, headers=ORIGIN)
    assert answer.status_code == 409 and said in answer.text, answer.text
    assert not asked(lab, what)


def test_a_class_of_a_queue_is_changed_and_the_snippet_has_the_whole_queue(
    lab: StandIn, client: TestClient
) -> None:
    bands = [
        {"name": name, "pcp": [], "dscp": dscp, "ports": [], "limit_packets": 1000, "rate_bps": 10**6,
         "ceil_bps": 5 * 10**6}
        for name, dscp in (("voice", [46]), ("rest", []))
    ]  # fmt: skip
    before = lab.answer

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        found = before(request)
        if request["op"] == "inspect":
            asked = found["links"]["wan"]["forward"]["requested"]
            found["links"]["wan"]["forward"]["requested"] = asked | {
                "rate_bps": 5 * 10**6, "queue": {"kind": "htb", "bands": bands}
            }  # fmt: skip
        return found

    lab.answer = answer  # type: ignore[method-assign]
    wanted = {"link": "wan", "sides": ["forward"], "class": {"name": "voice", "guaranteed": "2 Mbit/s"}}
    done = client.post("/api/lab/shown/link", json=wanted, headers=ORIGIN)
    assert done.status_code == 200, done.text
    (sent,) = asked(lab, "link")
    assert [band["rate_bps"] for band in sent["forward"]["queue"]["bands"]] == [2 * 10**6, 10**6]
    assert "queue: {htb: {voice: {rate: 2 Mbit/s, ceil: 5 Mbit/s, dscp: [46]" in done.json()["snippet"]


def test_machines_are_kept_and_taken_back(lab: StandIn, client: TestClient) -> None:
    for action in ("snapshot", "revert"):
        wanted = {"action": action, "nodes": ["broker"], "name": "booted"}
        assert client.post("/api/lab/shown/snapshot", json=wanted, headers=ORIGIN).status_code == 200
        (one,) = asked(lab, action)
        assert (one["nodes"], one["name"]) == (["broker"], "booted")


def test_guests_change_nothing(lab: StandIn) -> None:
    client, _ = served(lab.run_dir.parents[1], read_only=True)
    for what in ("add", "remove", "capture", "link", "power", "set", "snapshot"):
        answer = client.post(f"/api/lab/shown/{what}", json={}, headers=ORIGIN)
        assert answer.status_code == 403 and "read-only" in answer.text
    for kind in ("shell", "console"):
        refused = client.websocket_connect(f"{WS}/ws/lab/shown/{kind}/broker", headers=ORIGIN)
        with pytest.raises(WebSocketDisconnect), refused:
            pass
    assert lab.asked == []
