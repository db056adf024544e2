"""Tests the access control of the live page, and the requests that its headers forbid."""

from __future__ import annotations

import gzip
import hashlib
import re
import signal
import ssl
import subprocess
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_line import CommandLine
from page_lab import HOST, ORIGIN, WS, StandIn, served
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from orchestrator.cli.errors import CliError
from orchestrator.cli.page.app import STATIC
from orchestrator.cli.serve import _front, authority, serve_command

COOKIE = "vnet-8350"


def test_the_token_of_the_first_address_becomes_a_cookie(client: TestClient) -> None:
    client.cookies.clear()
    answer = client.get("/?token=secret", follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    said = answer.headers["set-cookie"].lower()
    assert "httponly" in said and "samesite=strict" in said
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    "path", ["/", "/api/overview", "/static/lab.js", "/files/shown/1/manifest.json", "/?token=no"]
)
def test_nothing_without_the_token(client: TestClient, path: str) -> None:
    client.cookies.clear()
    answer = client.get(path)
    assert answer.status_code == 403 and "vnet serve` printed" in answer.text


def test_a_redirect_stays_here(client: TestClient) -> None:
    for path in ("//evil.example/", "/%5C%5Cevil.example"):
        location = client.get(f"http://{HOST}{path}?token=secret", follow_redirects=False).headers["location"]
        assert re.match(r"/[^/\\]", location), location


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
)
def test_other_names_and_other_pages_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/api/overview", headers=headers).status_code == 403


def test_a_change_needs_the_pages_own_origin(client: TestClient, lab: StandIn) -> None:
    for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": "http://127.0.0.1:9"}):
        assert client.post("/api/lab/shown/link", json={}, headers=headers).status_code == 403
    assert lab.asked == []


SOCKETS = ("/ws/lab/shown", "/ws/lab/shown/shell/broker", "/ws/lab/shown/console/broker")


@pytest.mark.parametrize("path", SOCKETS)
@pytest.mark.parametrize("token", ["", "wrong"])
def test_sockets_need_the_token(client: TestClient, lab: StandIn, path: str, token: str) -> None:
    client.cookies.clear()
    headers = {**ORIGIN, "Cookie": f"{COOKIE}={token}"}
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(WS + path, headers=headers):
        pass
    assert lab.asked == []


@pytest.mark.parametrize("path", SOCKETS)
def test_sockets_need_the_pages_own_origin(client: TestClient, lab: StandIn, path: str) -> None:
    for headers in ({}, {"Origin": "http://evil.example"}):
        with pytest.raises(WebSocketDisconnect), client.websocket_connect(WS + path, headers=headers):
            pass
    assert lab.asked == []


def test_every_answer_has_its_policy(client: TestClient) -> None:
    for path in (
        "/",
        "/lab/shown",
        "/api/overview",
        "/static/lab.js",
        "/nothing",
        "/files/shown/1/plan.json",
    ):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "script-src 'self' 'unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"


def test_pages_have_no_script_of_their_own_and_nothing_from_elsewhere() -> None:
    for page in STATIC.glob("*.html"):
        text = page.read_text()
        assert not re.search(r"<script(?![^>]*\ssrc=\"/static/)|\son\w+=|style=|https?:|//\w", text), page
    for script in STATIC.glob("*.js"):
        text = script.read_text()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text
        )
        assert not re.search(r"[\"'`]https?://(?!www\.w3\.org)", text), script


def test_vendored_files_are_those_that_are_named() -> None:
    said = dict(
        re.findall(
            r"\| (\S+\.(?:mjs|css)) \|.*\| ([0-9a-f]{64}) \|", (STATIC / "vendor/README.md").read_text()
        )
    )
    shipped = [p for p in (STATIC / "vendor").glob("*.*s") if not p.name.endswith(".d.mts")]
    assert said == {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in shipped} and len(said) == 3


def test_the_page_stays_small() -> None:
    packed = sum(len(gzip.compress(p.read_bytes())) for p in STATIC.rglob("*") if p.is_file())
    assert packed < 600_000


def test_names_of_labs_do_not_walk(client: TestClient) -> None:
    for name in ("..", "..%2Fs%2Fshown", "Shown", "a" * 80):
        assert client.get(f"/api/lab/{name}/fetch?path=plan.json").status_code in (404, 409)


def test_guests_change_nothing(lab: StandIn) -> None:
    client, _ = served(lab.run_dir.parents[1], read_only=True)
    assert (
        client.post("/api/lab/shown/link", json={"link": "wan", "down": True}, headers=ORIGIN).status_code
        == 403
    )
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect(WS + "/ws/lab/shown/shell/broker", headers=ORIGIN),
    ):
        pass
    assert lab.asked == []


def test_behind_a_proxy_only_its_own_pages_get_in(lab: StandIn) -> None:
    client, _ = served(lab.run_dir.parents[1], hosts={HOST, "labs.example"}, secure={"labs.example"})
    ours = {"Host": "labs.example", "Cookie": f"{COOKIE}=secret"}
    assert client.get("/api/overview", headers=ours).status_code == 200
    wanted = {"nodes": ["broker"]}
    for origin, status in (("https://labs.example", 200), ("http://labs.example", 403)):
        headers = {**ours, "Origin": origin}
        assert client.post("/api/lab/shown/remove", json=wanted, headers=headers).status_code == status
    said = client.get("/?token=secret", headers={"Host": "labs.example"}, follow_redirects=False)
    assert "secure" in said.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", "0.0.0.0"), "would cross the network in the clear"),
        (("--tls-cert", "none.pem"), "give both"),
        (("--tls-cert", "none.pem", "--tls-key", "none.pem"), "No such file"),
        (("--proxy", "http://labs.example"), "write https://NAME"),
        (("--proxy", "https://labs.example/vnet"), "no path"),
    ],
)
def test_another_address_needs_tls(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(serve_command, ["--results", str(tmp_path), *options], standalone_mode=False)
    assert isinstance(done.exception, CliError) and said in done.exception.text


def test_tls_by_the_certificate_that_is_given(vnet: CommandLine) -> None:
    (vnet.cwd / "results").mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
         "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem",
         "-out", "cert.pem"], cwd=vnet.cwd, check=True, capture_output=True,
    )  # fmt: skip
    process = vnet.start("serve", "--port", "0", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
    assert process.stderr is not None
    address = process.stderr.readline().split()[-1]
    assert address.startswith("https://127.0.0.1:")
    trusted = ssl.create_default_context(cafile=str(vnet.cwd / "cert.pem"))
    opener = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=trusted), urllib.request.HTTPCookieProcessor()
    )
    with opener.open(address, timeout=60) as answer:
        assert b"Labs on this machine" in answer.read()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("name", "port", "scheme", "host"),
    [
        ("127.0.0.1", 8350, "http", "127.0.0.1:8350"),
        ("::1", 8350, "http", "[::1]:8350"),
        ("0:0::1", 8350, "http", "[::1]:8350"),
        ("[FD00::A]", 8350, "https", "[fd00::a]:8350"),
        ("Lab7.example.org", 8350, "https", "lab7.example.org:8350"),
        ("lab7.example.org", 443, "https", "lab7.example.org"),
        ("lab7.example.org", 443, "http", "lab7.example.org:443"),
        ("::1", 80, "http", "[::1]"),
    ],
)
def test_names_are_written_as_browsers_do(name: str, port: int, scheme: str, host: str) -> None:
    assert authority(name, port, scheme) == host


@pytest.mark.parametrize(
    ("proxy", "front"),
    [
        ("https://Labs.example.org/", "labs.example.org"),
        ("https://labs.example.org:443", "labs.example.org"),
        ("https://[fd00::1]:8443", "[fd00::1]:8443"),
    ],
)
def test_a_proxy_is_named_as_browsers_do(proxy: str, front: str) -> None:
    assert _front(proxy) == front


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6")
@pytest.mark.parametrize("address", ["::1", "127.0.0.2"])
def test_an_address_of_this_machine_alone_needs_no_tls(vnet: CommandLine, address: str) -> None:
    process = vnet.start("serve", "--port", "0", "--host", address)
    assert process.stderr is not None
    printed = process.stderr.readline().split()[-1]
    assert printed.startswith("http://[::1]:" if ":" in address else f"http://{address}:")
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(printed, timeout=60) as answer:
        assert b"Labs on this machine" in answer.read()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
