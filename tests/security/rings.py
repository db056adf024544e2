"""Makes rings of packet sockets until the kernel refuses, and prints how many it got; a node runs it."""

from __future__ import annotations

import errno
import json
import mmap
import socket
import struct
import sys
import threading

SOL_PACKET, PACKET_RX_RING, PACKET_VERSION, PACKET_TX_RING = 263, 5, 10, 13
MIB = 1 << 20
MOST_MIB = 512


def request(mib: int) -> bytes:
    """Returns a struct tpacket_req for a ring of `mib` blocks of 1 MiB."""
    return struct.pack("=4I", MIB, mib, 2048, mib * (MIB // 2048))


def opened() -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    made.setsockopt(SOL_PACKET, PACKET_VERSION, 1)
    return made


def grow(option: int, held: list[socket.socket]) -> int:
    """Opens sockets with a ring of 1 MiB each and keeps them; returns how many the kernel granted."""
    before = len(held)
    while len(held) < MOST_MIB:
        one = opened()
        try:
            one.setsockopt(SOL_PACKET, option, request(1))
        except OSError as error:
            assert error.errno == errno.ENOMEM, error
            break
        held.append(one)
    return len(held) - before


def main() -> None:
    held: list[socket.socket] = []
    found: dict[str, object] = {"received": grow(PACKET_RX_RING, held)}
    found["sent beside them"] = grow(PACKET_TX_RING, held)
    mapped = mmap.mmap(held[0].fileno(), MIB)
    for one in held:
        one.close()
    again = list[socket.socket]()
    found["after all but a mapped one were closed"] = grow(PACKET_TX_RING, again)
    again.pop().setsockopt(SOL_PACKET, PACKET_TX_RING, request(0))
    in_thread: list[socket.socket] = []
    thread = threading.Thread(target=grow, args=(PACKET_RX_RING, in_thread))
    thread.start()
    thread.join()
    found["in a thread after one was returned"] = len(in_thread)
    try:
        opened().setsockopt(SOL_PACKET, PACKET_RX_RING, b"\0" * 8)
    except OSError as error:
        found["a short request"] = errno.errorcode[error.errno or 0]
    mapped.close()
    print(json.dumps(found), flush=True)
    sys.stdin.read()


main()
