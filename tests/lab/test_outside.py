"""Tests endpoints outside the lab: refusals of files and command lines, and what a node reaches."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_running import needs_light

from orchestrator.language.endpoints import endpoint, endpoints, split
from orchestrator.language.units import UnitError
from orchestrator.plan.build import make_plan
from orchestrator.plan.clone import CloneError, clones
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

sys.path.append(str(Path(__file__).resolve().parents[1] / "virtual"))
from virtual_place import Place

GROUP = "  two: {segment: lan}\ngroups:\n  not:\n    count: 2\n    outside: 1.1.1.1:1"
SIZE = 6_000_000  # bytes: more than the relay keeps for one side
ASK = """\
import socket, sys
def talk(address, port):
    try:
        with socket.create_connection((address, port), timeout=5) as s:
            s.sendall(b"x" * int(sys.argv[3]))
            s.shutdown(socket.SHUT_WR)
            got = 0
            while data := s.recv(65536):
                got += len(data)
            return got
    except OSError as error:
        return error.strerror or "timed out"
print(sys.argv[1], talk(sys.argv[1], int(sys.argv[2])))
"""
FILE = """\
name: way-out
segments: {{lan: {{subnet: 10.1.0.0/24}}}}
nodes:
  reaches:
    segment: lan
    outside: {{{endpoint}}}
    software:
      ask: {{command: "sleep 1; python3 ask.py 127.0.0.1 {port} {size}; python3 ask.py 127.0.0.1 {other} 1", files: &ask {{ask.py: {ask}}}, start: hold, at_end: exited}}
  not:
    segment: lan
    software:
      ask: {{command: "sleep 1; python3 ask.py 127.0.0.1 {port} 1; python3 ask.py 10.1.0.1 {port} 1", files: *ask, start: hold, at_end: exited}}
run: {{hold: 5 s}}
"""  # noqa: E501


def text(port: int, other: int, wanted: str | None = None) -> str:
    return FILE.format(
        endpoint=wanted or f"127.0.0.1:{port}", port=port, other=other, size=SIZE, ask=json.dumps(ASK)
    )


@pytest.fixture
def echo() -> Iterator[int]:
    """Yields the port of a server outside the lab that returns everything it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer:
                    while data := peer.recv(65536):
                        peer.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def closed() -> int:
    """Returns a port of this machine on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("wanted", "rule"),
    [
        ("192.0.2.7", "is not ADDRESS:PORT"),
        ("example.org:80", "is not ADDRESS:PORT"),
        ("192.0.2.0/24:80", "is not ADDRESS:PORT"),
        ("192.0.2.7:80-90", "is not ADDRESS:PORT"),
        ("192.0.2.700:80", "has no IP address"),
        ("192.0.2.7:0", "has no port from 1"),
        ("192.0.2.7:65536", "has no port from 1"),
        ("224.0.0.1:80", "is no address of one machine"),
        ("0.0.0.0:80", "is no address of one machine"),
        ("[::]:80", "is no address of one machine"),
    ],
)
def test_what_is_no_single_endpoint_is_refused(wanted: str, rule: str) -> None:
    with pytest.raises(UnitError, match=rule):
        endpoint(wanted)


def test_endpoints_have_one_form() -> None:
    assert endpoints({"[2001:DB8:0::7]:443": None, "192.0.2.7:80": None}) == [
        "[2001:db8::7]:443",
        "192.0.2.7:80",
    ]
    assert split("[2001:db8::7]:443") == ("2001:db8::7", 443)
    for wrong, rule in (({"192.0.2.7:80": 1}, "values beside"), (["192.0.2.7:80"] * 2, "twice")):
        with pytest.raises(UnitError, match=rule):
            endpoints(wrong)


def test_an_address_of_the_lab_and_a_virtual_machine_are_refused() -> None:
    for wanted, rule in (
        (text(80, 81, "10.1.0.9:80"), "is of segment lan, a subnet of this lab"),
        (text(80, 81).replace("  reaches:", "  reaches:\n    kind: vm"), "is only for kind light"),
        (text(80, 81).replace("  not:", GROUP), "is not a key here"),
    ):  # fmt: skip
        with pytest.raises(TopologyError, match=rule):
            parse("way-out.yaml", wanted.encode())


def test_a_node_with_a_way_out_is_not_cloned() -> None:
    plan = make_plan(parse("way-out.yaml", text(80, 81).encode()))
    assert plan.nodes[0].outside == ("127.0.0.1:80",)
    with pytest.raises(CloneError, match="outside the lab, which is for one node"):
        clones(plan, {}, "reaches", 1, idle=True)


PLACE = "way-out.yaml:6: nodes.reaches.outside: 127.0.0.1:80"
REFUSED = {
    "not allowed": ([], f"{PLACE}: is outside the lab, and the command line does not allow it"),
    "another allowed": (["--allow-outside", "127.0.0.1:81"], "127.0.0.1:81: is allowed, and no node"),
    "no endpoint": (["--allow-outside", "everything"], "is not ADDRESS:PORT"),
    "virtual time": (["--allow-outside", "127.0.0.1:80", "--time", "virtual"], "needs a way to 127.0.0.1:80"),
    "a lab kernel": (["--allow-outside", "127.0.0.1:80", "--kernel", "uml"], "needs a way to 127.0.0.1:80"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_without_permission_no_lab_is_made(name: str, tmp_path: Path) -> None:
    options, rule = REFUSED[name]
    (tmp_path / "way-out.yaml").write_text(text(80, 81))
    done = Place(tmp_path).vnet("run", "way-out.yaml", *options)
    assert done.returncode != 0 and rule in done.stderr, done.stderr
    assert not (tmp_path / "results").exists()


@needs_light
@pytest.mark.timeout(120)
def test_a_node_reaches_its_endpoint_and_no_other(tmp_path: Path, echo: int, closed: int) -> None:
    """Shows that the node gets all its bytes back, that neither another port nor another node has a way out,
    and that the run states what was carried.
    """
    (tmp_path / "way-out.yaml").write_text(text(echo, closed))
    options = ("--kernel", "host", "--allow-outside", f"127.0.0.1:{echo}", "--results", "out", "--json")
    done = Place(tmp_path).vnet("run", "way-out.yaml", *options)
    assert done.returncode == 0, done.stderr
    run_dir = Path(tmp_path / json.loads(done.stdout)["run_dir"])
    logs = {path.stem: path.read_text().splitlines() for path in (run_dir / "raw" / "logs").glob("*.log")}
    assert logs["reaches.ask"] == [f"127.0.0.1 {SIZE}", "127.0.0.1 Connection refused"]
    assert logs["not.ask"] == ["127.0.0.1 Connection refused", "10.1.0.1 Connection refused"]
    warnings = json.loads((run_dir / "manifest.json").read_text())["warnings"]
    said = " ".join(one["text"] for one in warnings if one["code"] == "outside")
    assert f"reaches 127.0.0.1:{echo} outside the lab" in said
    assert f"1 connections, 0 of them refused, {SIZE} bytes out, {SIZE} bytes in" in said
    assert f"reaches 127.0.0.1:{echo} outside the lab" in (run_dir / "report" / "index.html").read_text()
