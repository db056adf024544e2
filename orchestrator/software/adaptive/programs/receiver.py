"""Takes messages by TCP and UDP on one port, records each arrival, and returns probes.

Usage: receiver.py SETTINGS
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import wire
from account import Account

LARGEST_BYTES = 65_536


class Receiver:
    """The sockets of the receiver; `seen` holds the messages that have come."""

    def __init__(self, account: Account, settings: dict[str, Any]) -> None:
        self.account, self.seen = account, set[tuple[int, int]]()
        place = (settings["host"], settings["port"])
        family = socket.AF_INET6 if ":" in settings["host"] else socket.AF_INET
        self.datagrams = socket.socket(family, socket.SOCK_DGRAM)
        self.datagrams.bind(place)
        self.listener = socket.create_server(place, family=family, dualstack_ipv6=family == socket.AF_INET6)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.datagrams, selectors.EVENT_READ, None)
        self.selector.register(self.listener, selectors.EVENT_READ, None)

    def arrived(self, found: wire.Head) -> None:
        """Records a message; one that came before is a copy."""
        key = (found.flow, found.seq)
        self.account.received(*key, self.account.endpoint, 0, copy=int(key in self.seen))
        self.seen.add(key)

    def datagram(self) -> None:
        """Takes one datagram: returns a probe, records a message, ignores anything else."""
        data, place = self.datagrams.recvfrom(LARGEST_BYTES)
        found = wire.head(data)
        if found is None:
            return
        if found.word == wire.PROBE:
            with suppress(OSError):  # no route back: the sender counts the message as lost
                self.datagrams.sendto(data, place)
        elif wire.is_message(found):
            self.arrived(found)

    def stream(self, connection: socket.socket, held: bytearray) -> None:
        """Takes what a connection has, and records the messages that are complete; closes one that ended or
        that carries anything else.
        """
        try:
            data = connection.recv(LARGEST_BYTES)
        except OSError:
            data = b""
        held += data
        while (found := wire.head(held)) is not None and wire.is_message(found) and len(held) >= found.length:
            self.arrived(found)
            del held[: found.length]
        if not data or (found is not None and not wire.is_message(found)):
            self.selector.unregister(connection)
            connection.close()

    def run(self) -> None:
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.datagrams:
                    self.datagram()
                elif key.fileobj is self.listener:
                    self.selector.register(self.listener.accept()[0], selectors.EVENT_READ, bytearray())
                elif isinstance(key.fileobj, socket.socket):
                    self.stream(key.fileobj, key.data)


def main() -> None:
    account = Account()
    receiver = Receiver(account, json.loads(Path(sys.argv[1]).read_text()))
    account.step("listening")
    print("vnet: ready", flush=True)
    receiver.run()


if __name__ == "__main__":
    main()
