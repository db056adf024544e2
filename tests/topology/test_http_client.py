"""Tests the HTTP client of `vnet new --service` against servers on the loopback interface: every request has
a line, also one without an answer, and its time counts from when it was due.
"""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from orchestrator.topology.first_service import CLIENT
from reports.programs import access
from reports.programs.reading import Figure

SECONDS = "0.8"  # eight requests


class Answering(BaseHTTPRequestHandler):
    """Answers 200; the request for /slow only after a second, for /?q=1&r=2 with four bytes. It closes the
    connection after the answer for /closed, without a header that announces this.
    """

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/slow":
            time.sleep(1)
        with suppress(BrokenPipeError):  # the client was stopped
            self.send_response(200)
            body = b"long" if self.path == "/?q=1&r=2" else b"ok"
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        self.close_connection = self.path == "/closed"

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@contextmanager
def server(certificate: Path | None = None) -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as made:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            made.socket = context.wrap_socket(made.socket, server_side=True)
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        try:
            yield made.server_port
        finally:
            made.shutdown()
            thread.join()


def figures(port: int, path: str, *, stopped: bool = False, trusted: Path | None = None) -> dict[str, Figure]:
    """Runs the client, ten requests a second, and returns the figures of its output. stopped: it gets SIGTERM
    after its first line. trusted: requests go over https, and this authority is trusted.
    """
    scheme, environment = ("https", {"SSL_CERT_FILE": str(trusted)}) if trusted else ("http", {})
    command = [sys.executable, "-u", str(CLIENT), f"{scheme}://127.0.0.1:{port}{path}", "0.1", SECONDS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | environment) as client:
        assert client.stdout is not None
        said = [client.stdout.readline()]
        if stopped:
            client.send_signal(signal.SIGTERM)
        said += client.stdout.readlines()
    assert client.returncode == 0
    return {one.name: one for one in access.read([line.rstrip("\n") for line in said])}


def test_each_request_is_answered_and_timed() -> None:
    with server() as port:
        found = figures(port, "/")
    assert found["status_2xx"].value == found["requests"].value == 8 and found["latency_min"].value > 0
    assert round(1e6 * found["bytes"].value) == 16


def test_a_slow_answer_keeps_no_other_request_waiting() -> None:
    with server() as port:
        found = figures(port, "/slow")
    assert found["status_2xx"].value == 8 and found["latency_min"].value > 900


def test_requests_without_an_answer_are_counted_when_the_client_is_stopped() -> None:
    with server() as port:
        found = figures(port, "/slow", stopped=True)
    assert found["requests"].value >= 2 and found["status_5xx"].value == found["requests"].value - 1


def test_a_service_that_is_gone_answers_nothing() -> None:
    with server() as port:
        pass
    found = figures(port, "/")
    assert found["status_5xx"].value == found["requests"].value == 8


def test_a_connection_that_the_server_closed_is_opened_anew() -> None:
    with server() as port:
        found = figures(port, "/closed")
    assert found["status_2xx"].value == found["requests"].value == 8


def test_the_query_of_the_url_is_sent() -> None:
    with server() as port:
        found = figures(port, "/?q=1&r=2")
    assert round(1e6 * found["bytes"].value) == 32


def test_https_is_requested_where_the_certificate_is_trusted(tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    wanted = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext subjectAltName=IP:127.0.0.1"
    made = ["openssl", *wanted.split(), "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "cert")]
    subprocess.run(made, check=True, capture_output=True)
    both.write_text((tmp_path / "key").read_text() + (tmp_path / "cert").read_text())
    with server(both) as port:
        found = figures(port, "/", trusted=tmp_path / "cert")
        assert found["status_2xx"].value == found["requests"].value == 8
        other = tmp_path / "empty"
        other.write_text("")
        assert figures(port, "/", trusted=other)["status_5xx"].value == 8


@pytest.mark.parametrize("url", ["ftp://h/", "h:80/", "http:///x", "http://h:port/", "http://me@h/"])
def test_a_url_that_it_cannot_request_is_refused(url: str) -> None:
    ended = subprocess.run(
        [sys.executable, str(CLIENT), url, "1", "1"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1 and ended.stdout == "" and "Traceback" not in ended.stderr
    assert url in ended.stderr and "write http://HOST:PORT/PATH" in ended.stderr
