"""Makes traffic to capture, as a small MQTT 3.1.1 client on a blocking socket."""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import time

from frames import mqtt


def connect(address: str, name: str, port: int = 1883) -> socket.socket:
    sock = socket.create_connection((address, port), timeout=30)
    ident = name.encode()
    sock.sendall(mqtt(1, b"\0\4MQTT\4\2\0\x3c" + struct.pack("!H", len(ident)) + ident))
    return sock


def main(address: str, count: int, size: int) -> None:
    """Subscribes, then publishes `count` messages of `size` bytes with QoS 0, 1 and 2 in turn."""
    sock = connect(address, "load")
    sock.sendall(mqtt(8, b"\0\1\0\3t/#\2", 2))
    for number in range(count):
        qos = number % 3
        packet_id = struct.pack("!H", number + 10) if qos else b""
        sock.sendall(mqtt(3, b"\0\3t/x" + packet_id + bytes(size), qos << 1))
        if qos == 2:
            sock.sendall(mqtt(6, packet_id, 2))
        if number % 10 == 0:
            _drain(sock, 0.01)
    sock.sendall(mqtt(12))
    _drain(sock, 2.0)
    sock.sendall(mqtt(14))
    sock.close()


def _drain(sock: socket.socket, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    with contextlib.suppress(TimeoutError):
        while (left := deadline - time.monotonic()) > 0:
            sock.settimeout(left)
            if not sock.recv(65536):
                return
    sock.settimeout(30)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
