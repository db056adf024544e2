"""Sends a GET request to URL each INTERVAL seconds for SECONDS, whether earlier ones are answered or not, and
prints a line of an access log for each: address, time, request, status, bytes, and the seconds from the
moment when the request was due. Status 504: no answer came.

A request takes a connection that is idle, or opens one. The standard library only.
Call: python3 http_client.py URL INTERVAL SECONDS
"""

from __future__ import annotations

import http.client
import signal
import sys
import time
from threading import Lock, Thread
from urllib.parse import urlsplit

TIMEOUT_S = 10.0  # without an answer
NO_ANSWER = 504
FAILED = (OSError, http.client.HTTPException)


class Client:
    """Requests of one URL; `unanswered` holds the monotonic times when those were due that have no line."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._path = parts.netloc, parts.path or "/"
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = Lock()
        self.unanswered: set[float] = set()

    def request(self, due_s: float) -> None:
        """Sends a request and prints its line."""
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        connection = idle or http.client.HTTPConnection(self._host, timeout=TIMEOUT_S)
        try:
            connection.request("GET", self._path)
            answer = connection.getresponse()
            status, size = answer.status, len(answer.read())
        except FAILED as error:
            connection.close()
            print(f"no answer: {error!r}", flush=True)
            status, size = NO_ANSWER, 0
        else:
            with self._lock:
                self._idle.append(connection)
        self.line(due_s, status, size)

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


def main(url: str, interval_s: float, seconds: float) -> None:
    """Sends the requests and waits for the answers; at SIGTERM, those without an answer are given up."""
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
