"""Sends a GET request to URL each INTERVAL seconds for SECONDS, whether earlier ones are answered or not, and
prints a line of an access log for each: address, time, request, status, bytes, and the seconds from the
moment when the request was due. Status 504: no answer came.

A request takes a connection that is idle, or opens one; where the server has closed the idle one meanwhile,
the request is sent once more, on a new one. URL: http or https, whose certificate must be trusted
(SSL_CERT_FILE names an authority of your own). The standard library only.
Call: python3 http_client.py URL INTERVAL SECONDS
"""

from __future__ import annotations

import http.client
import signal
import sys
import time
from threading import Lock, Thread
from urllib.parse import SplitResult, urlsplit

TIMEOUT_S = 10.0  # seconds after which a request without an answer is given up
NO_ANSWER = 504
FAILED = (OSError, http.client.HTTPException)
CLOSED = (ConnectionResetError, BrokenPipeError)  # RemoteDisconnected is a subclass of the first
KINDS = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


class Client:
    """Requests of one URL; `unanswered` holds the monotonic times at which requests without a line
    were due.
    """

    def __init__(self, url: str) -> None:
        parts = _checked(url)
        self._kind, self._host = KINDS[parts.scheme], parts.netloc
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = Lock()
        self.unanswered: set[float] = set()

    def request(self, due_s: float) -> None:
        """Sends a request and prints its line."""
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        connection = idle or self._kind(self._host, timeout=TIMEOUT_S)
        try:
            try:
                answer = self._answer(connection)
            except CLOSED:
                connection.close()
                if idle is None:
                    raise
                connection = self._kind(self._host, timeout=TIMEOUT_S)
                answer = self._answer(connection)
            status, size = answer.status, len(answer.read())
        except FAILED as error:
            connection.close()
            print(f"no answer: {error!r}", flush=True)
            status, size = NO_ANSWER, 0
        else:
            with self._lock:
                self._idle.append(connection)
        self.line(due_s, status, size)

    def _answer(self, connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
        connection.request("GET", self._path)
        return connection.getresponse()

    def line(self, due_s: float, status: int, size: int) -> None:
        """Prints the line of a request that is answered or given up now, unless it has one."""
        with self._lock:
            if due_s not in self.unanswered:
                return
            self.unanswered.remove(due_s)
            stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
            took_s = time.monotonic() - due_s
            request = f"GET {self._path} HTTP/1.1"
            print(f'{self._host} - - [{stamp}] "{request}" {status} {size} "-" "-" {took_s:.6f}', flush=True)


def _checked(url: str) -> SplitResult:
    """Returns the URL's parts, or ends the program with status 1 if the client cannot request it."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if the port is invalid
    except ValueError as error:
        sys.exit(f"http_client.py: URL {url!r}: {error}; write http://HOST:PORT/PATH")
    if parts.scheme not in KINDS or not parts.hostname or parts.username is not None:
        sys.exit(
            f"http_client.py: URL {url!r}: only http and https, without a user's name; write http://HOST:PORT/PATH"
        )
    return parts


def main(url: str, interval_s: float, seconds: float) -> None:
    """Sends the requests and waits for the answers; at SIGTERM, gives up those without an answer."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    client, begin_s = Client(url), time.monotonic()
    threads = []
    try:
        for number in range(round(seconds / interval_s)):
            due_s = begin_s + number * interval_s
            time.sleep(max(0.0, due_s - time.monotonic()))
            client.unanswered.add(due_s)
            threads.append(Thread(target=client.request, args=(due_s,), daemon=True))
            threads[-1].start()
        for thread in threads:
            thread.join()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for due_s in sorted(client.unanswered.copy()):
            client.line(due_s, NO_ANSWER, 0)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
