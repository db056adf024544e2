"""Sets timers of several kinds in a node, and prints KIND, the requested and the measured time in ms for each
try.
"""

from __future__ import annotations

import array
import fcntl
import select
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

TRIES = 12
MS = (2, 20, 50, 200)
DELAYED_ACK_MS, FIRST_SYN_MS = 40, 1000  # TCP_DELACK_MIN and TCP_TIMEOUT_INIT of include/net/tcp.h
SIOCOUTQ = 0x5411
LOOK_S = 0.0002  # s between two readings of a connection's state


def took(kind: str, asked_ms: float, wait: Callable[[], object]) -> None:
    before = time.monotonic()
    wait()
    print(kind, f"{asked_ms:.3f} {(time.monotonic() - before) * 1000:.3f}", flush=True)


def receive_timeout(ms: int) -> None:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, ms * 1000))
    with suppress(BlockingIOError):
        s.recv(1)


def connected() -> tuple[socket.socket, socket.socket]:
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client, listener.accept()[0]


def until_acknowledged(client: socket.socket) -> None:
    unacknowledged = array.array("i", [1])
    client.send(b"x")
    while unacknowledged[0]:
        time.sleep(LOOK_S)
        fcntl.ioctl(client, SIOCOUTQ, unacknowledged)


def info(s: socket.socket) -> bytes:
    return s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)


def until_retransmitted(s: socket.socket) -> None:
    while info(s)[2] == 0:  # tcpi_retransmits
        time.sleep(LOOK_S)


def send_into_the_void(client: socket.socket) -> None:
    client.send(b"x")
    until_retransmitted(client)


def connect_into_the_void() -> None:
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("127.0.0.1", 9))
    until_retransmitted(s)


for _ in range(TRIES):
    for ms in MS:
        took("SO_RCVTIMEO", ms, lambda ms=ms: receive_timeout(ms))
        took("poll", ms, lambda ms=ms: select.poll().poll(ms))
        took("nanosleep", ms, lambda ms=ms: time.sleep(ms / 1000))
    one, other = connected()
    other.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
    took("delayed ACK", DELAYED_ACK_MS, lambda one=one: until_acknowledged(one))
Path("/proc/sys/net/ipv4/tcp_early_retrans").write_text("0")  # the kernel sends no probe before the timeout
pairs = [connected() for _ in range(TRIES // 2)]
subprocess.run(["tc", "qdisc", "add", "dev", "lo", "root", "netem", "loss", "100%"], check=True)
for one, _ in pairs:
    rto_ms = struct.unpack_from("I", info(one), 8)[0] / 1000
    took("RTO", rto_ms, lambda one=one: send_into_the_void(one))
for _ in range(TRIES // 2):
    took("RTO of a SYN", FIRST_SYN_MS, connect_into_the_void)
print("end", flush=True)
