"""Tests the HTTP client of `vnet new --service` against servers on the loopback interface: every request has
a line, also one without an answer, and its time counts from when it was due.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from orchestrator.topology.first_service import CLIENT
from reports.programs import access
from reports.programs.reading import Figure

SECONDS = "0.8"  # eight requests


class Answering(BaseHTTPRequestHandler):
    """Answers 200; the request for /slow only after a second."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/slow":
            time.sleep(1)
        with suppress(BrokenPipeError):  # the client was stopped
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@contextmanager
def server() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        try:
            yield made.server_port
        finally:
            made.shutdown()
            thread.join()


def figures(port: int, path: str, *, stopped: bool = False) -> dict[str, Figure]:
    """Runs the client, ten requests a second, and returns the figures of its output. stopped: it gets SIGTERM
    after its first line.
    """
    command = [sys.executable, "-u", str(CLIENT), f"http://127.0.0.1:{port}{path}", "0.1", SECONDS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
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
