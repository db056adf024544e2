"""Sends each message at its scheduled time: over a TCP connection, in one datagram, or in two. With
`use: adaptive` it probes the path and chooses; the time of each choice becomes a span.

Usage: sender.py SETTINGS
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import sys
from collections import deque
from pathlib import Path
from typing import Any

import wire
from account import Account
from policy import Policy, Probes, choice

AGAIN_NS = 10**9  # from one try to connect to the next
# longest wait after the flows' end for the kernel to take messages that still wait for the TCP connection
LINGER_NS = 2 * 10**9
Due = tuple[int, int, int, int]  # time, flow, number, bytes


class Stream:
    """The TCP connection, with the messages that it has not taken yet; opened again when it breaks."""

    def __init__(self, account: Account, place: tuple[str, int]) -> None:
        self.account, self.place = account, place
        self.waiting: deque[Due] = deque()
        self.rest = b""  # of the message that is half in the kernel
        self.socket: socket.socket | None = None
        self.connected = False
        self.tried_ns = 0

    @property
    def unfinished(self) -> bool:
        """Whether the connection has yet to take a message, or the rest of one."""
        return bool(self.rest or self.waiting)

    @property
    def waiting_for(self) -> list[socket.socket]:
        """Returns its socket if it waits until the kernel has connected it, or takes more; else none."""
        waits = not self.connected or self.unfinished
        return [self.socket] if self.socket is not None and waits else []

    def open(self, now_ns: int) -> None:
        """Begins to connect if there is no connection and the last try was a second ago; waits for nothing,
        since datagrams and probes go on meanwhile.
        """
        if self.socket is not None or now_ns - self.tried_ns < AGAIN_NS:
            return
        self.tried_ns = now_ns
        self.account.step("connecting")
        self.socket = socket.socket(socket.AF_INET6 if ":" in self.place[0] else socket.AF_INET)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.connected, self.rest = False, b""
        if (error := self.socket.connect_ex(self.place)) not in (0, errno.EINPROGRESS):
            self._close("failed", os.strerror(error))  # at once, for example without a route

    def _opened(self) -> bool:
        """Returns whether the connection is open; closes one that could not be opened."""
        if self.socket is None or self.connected:
            return self.connected
        if error := self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._close("failed", os.strerror(error))
        elif select.select([], [self.socket], [], 0)[1]:
            self.connected = True
            self.account.step("connected")
        return self.connected

    def _close(self, what: str, why: str) -> None:
        assert self.socket is not None
        self.account.step(what, why)
        self.socket.close()
        self.socket, self.connected = None, False

    def flush(self) -> None:
        """Gives the kernel what it takes, and records each message when its first byte is taken."""
        while self._opened() and self.socket is not None and self.unfinished:
            due = None if self.rest else self.waiting[0]
            data = self.rest if due is None else wire.message(*due[1:])
            now_ns = self.account.now_ns()
            try:
                taken = self.socket.send(data)
            except BlockingIOError:
                return
            except OSError as error:
                self._close("disconnected", str(error))
                return
            if due is not None:
                self.waiting.popleft()
                at_ns, flow, seq, size = due
                self.account.sent(flow, seq, size, at_ns, now_ns, 0, attempts=1)
            self.rest = data[taken:]


class Sender:
    """The sender of one node: its stream, its datagrams, its probes, and how it sends now."""

    def __init__(self, account: Account, settings: dict[str, Any]) -> None:
        self.account = account
        host, port = settings["to"][0]
        self.adapts = settings["use"] == "adaptive"
        self.how = "stream" if self.adapts else settings["use"]
        self.since_ns = 0
        self.policy = Policy(**settings["policy"])
        self.probes, self.probed, self.probe_ns = Probes(self.policy.window_ns), 0, 0
        self.stream = Stream(account, (host, port))
        self.datagrams = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.connect((host, port))
        self.datagrams.setblocking(False)

    @property
    def streams(self) -> bool:
        """Whether the sender may use its connection."""
        return self.adapts or self.how == "stream"

    def send(self, due: Due) -> None:
        """Sends one message as the sender sends now."""
        if self.how == "stream":
            self.stream.waiting.append(due)
            return
        at_ns, flow, seq, size = due
        copies, now_ns = 2 if self.how == "twice" else 1, self.account.now_ns()
        gone = sum(self._datagram(wire.message(flow, seq, size)) for _ in range(copies))
        self.account.sent(flow, seq, size, at_ns, now_ns if gone else 0, 0, attempts=gone)

    def _datagram(self, data: bytes) -> int:
        """Sends a datagram; returns 0 if the kernel refused it: a full queue, or no way there."""
        try:
            self.datagrams.send(data)
        except OSError:
            return 0
        return 1

    def probe(self, now_ns: int) -> None:
        """Sends a probe if one is due, and then looks whether another way to send is better."""
        if not self.adapts or now_ns < self.probe_ns:
            return
        self.probe_ns = max(self.probe_ns, now_ns - self.policy.probe_every_ns) + self.policy.probe_every_ns
        self.probed += 1
        self.probes.send(self.probed, now_ns)
        self._datagram(wire.probe(self.probed))
        better = choice(self.probes.measured(now_ns), self.policy, self.how)
        if better != self.how and now_ns - self.since_ns >= self.policy.stay_ns:
            self.change(better, now_ns)

    def change(self, how: str, now_ns: int) -> None:
        """Sends in another way from now on; records how long the last one was used."""
        self.account.span(self.how, self.since_ns, now_ns - self.since_ns)
        print(f"vnet: {how} after {self.how}", flush=True)
        self.how, self.since_ns = how, now_ns

    def wait(self, until_ns: int) -> None:
        """Waits for the next moment, or for a probe's return or room in the connection."""
        timeout = max(until_ns - self.account.now_ns(), 0) / 1e9
        readable, _, _ = select.select([self.datagrams], self.stream.waiting_for, [], timeout)
        while readable:
            try:
                found = wire.head(self.datagrams.recv(2048))
            except OSError:
                return  # nothing more, or a refusal of an earlier datagram
            if found is not None and found.word == wire.PROBE:
                self.probes.back(found.seq, self.account.now_ns())

    def _next_ns(self, messages: deque[Due], now_ns: int) -> int:
        """Returns when the next message, probe or try to connect is due; soon if no message is left."""
        moments = [messages[0][0] if messages else now_ns + 10_000_000]
        if self.adapts and messages:
            moments.append(self.probe_ns)
        if self.streams and self.stream.socket is None:
            moments.append(self.stream.tried_ns + AGAIN_NS)
        return min(moments)

    def run(self, messages: deque[Due], t0_ns: int, stop_ns: int) -> None:
        """Sends all messages, and lets the connection take what waits for at most two seconds more."""
        self.since_ns = self.probe_ns = max(t0_ns, self.account.now_ns())
        while messages or (self.stream.unfinished and self.account.now_ns() < stop_ns + LINGER_NS):
            now_ns = self.account.now_ns()
            if self.streams:
                self.stream.open(now_ns)
            if messages:
                self.probe(now_ns)
            while messages and messages[0][0] <= now_ns:
                self.send(messages.popleft())
            self.stream.flush()
            self.wait(self._next_ns(messages, now_ns))
        for at_ns, flow, seq, size in self.stream.waiting:
            self.account.sent(flow, seq, size, at_ns, 0, 0)
        now_ns = self.account.now_ns()
        self.account.span(self.how, self.since_ns, now_ns - self.since_ns)


def main() -> None:
    account = Account()
    sender = Sender(account, json.loads(Path(sys.argv[1]).read_text()))
    if sender.streams:
        sender.stream.open(account.now_ns())
        select.select([], sender.stream.waiting_for, [], AGAIN_NS / 1e9)
        sender.stream.flush()
    print("vnet: ready", flush=True)
    t0_ns = account.await_start()
    flows = account.told["sends"]
    due = sorted(
        (t0_ns + at_ns, flow["number"], seq, flow["payload"]["bytes"])
        for flow in flows
        for seq, at_ns in enumerate(flow["times_ns"])
    )
    sender.run(deque(due), t0_ns, t0_ns + max((flow["stop_ns"] for flow in flows), default=0))
    signal.pause()  # the sender runs as long as its node


if __name__ == "__main__":
    main()
