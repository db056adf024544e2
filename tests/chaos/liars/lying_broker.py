"""Runs on a node an MQTT 3.1.1 broker with QoS 2 that is honest, or drops or doubles every 10th message."""

from __future__ import annotations

import selectors
import socket
import sys

MODE = sys.argv[1]
TIMES = {"drop": lambda count: int(count % 10 != 0), "twice": lambda count: 1 + int(count % 10 == 0)}
ANSWERS = {6: 0x70, 5: 0x62}  # PUBREL is answered by PUBCOMP, PUBREC by PUBREL, each with the packet's id


class Broker:
    def __init__(self) -> None:
        self.subscribers: list[socket.socket] = []
        self.count = self.number = 0

    def take(self, who: socket.socket, kind: int, body: bytes) -> None:
        """Processes one packet of a client."""
        if kind == 1:
            who.sendall(b"\x20\x02\x00\x00")
        elif kind == 8:
            self.subscribers.append(who)
            who.sendall(packet(0x90, body[:2] + b"\x02"))
        elif kind == 3:
            end = 2 + int.from_bytes(body[:2], "big")
            who.sendall(packet(0x50, body[end : end + 2]))
            self.deliver(body[:end], body[end + 2 :])
        elif kind in ANSWERS:
            who.sendall(packet(ANSWERS[kind], body[:2]))
        elif kind == 12:
            who.sendall(b"\xd0\x00")

    def deliver(self, topic: bytes, payload: bytes) -> None:
        self.count += 1
        for who in self.subscribers:
            for _ in range(TIMES[MODE](self.count) if MODE in TIMES else 1):
                self.number = self.number % 60_000 + 1
                who.sendall(packet(0x34, topic + self.number.to_bytes(2, "big") + payload))


def packet(first: int, body: bytes) -> bytes:
    size, left = b"", len(body)
    while True:
        left, part = left >> 7, left & 127
        size += bytes([part | (128 if left else 0)])
        if not left:
            return bytes([first]) + size + body


def first_of(data: bytes) -> tuple[int, bytes, bytes] | None:
    """Returns kind, body and remaining bytes of the first whole packet; None if there is none."""
    size, at = 0, 1
    while at < len(data):
        size |= (data[at] & 127) << (7 * (at - 1))
        at += 1
        if not data[at - 1] & 128:
            whole = len(data) >= at + size
            return (data[0] >> 4, data[at : at + size], data[at + size :]) if whole else None
    return None


def main() -> None:
    broker, held, ready = Broker(), dict[socket.socket, bytes](), selectors.DefaultSelector()
    listener = socket.create_server(("", 1883))
    ready.register(listener, selectors.EVENT_READ)
    print("listening", flush=True)
    while True:
        for key, _ in ready.select():
            who = key.fileobj
            assert isinstance(who, socket.socket)
            if who is listener:
                new, _ = listener.accept()
                held[new] = b""
                ready.register(new, selectors.EVENT_READ)
                continue
            data = who.recv(65536)
            held[who] += data
            while (found := first_of(held[who])) is not None:
                kind, body, held[who] = found
                broker.take(who, kind, body)
            if not data:
                ready.unregister(who)
                broker.subscribers = [one for one in broker.subscribers if one is not who]


main()
