"""Measures the underlay between two hosts by frames through a tunnel; the part on each host runs this code.

A part sends frames like those of the link proof (local experimental ethertype, a group address that IEEE
802.1D bridges do not forward) out of the tunnel's device, and receives them at the other end's device, below
the bridge. The other part returns each probe at once, so one clock measures the round trip. The frames of a
train are sent back to back or at an interval, and their spacing at arrival shows the rate.
"""

from __future__ import annotations

import errno
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from orchestrator.lab.entering import enter
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.loop import Loop

ETHERTYPE = 0x88B5  # IEEE 802, local experimental 1
GROUP = bytes.fromhex("0180c200000e")
ETH_P_ALL = 3
MARK = b"vNEThost"
HEAD = struct.Struct("!8sBHHIq")  # MARK, kind, receiver and sender (numbers of hosts), number, sent_ns
PROBE, ECHO, TRAIN = range(3)
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # asm-generic/socket.h: exceeds the machine's default limit
BUFFER_BYTES = 1 << 22  # more than a train of full frames needs in the kernel's count
FULL = (errno.ENOBUFS, errno.EAGAIN)  # errors of a full device queue and of a full socket
READ_BYTES = 1 << 16
OUTGOING = 4  # PACKET_OUTGOING of linux/if_packet.h: marks frames that this socket sent itself


@dataclass
class Heard:
    """The frames received from one other host. Times are CLOCK_MONOTONIC (ns) of the receiving host; a round
    trip is in ns.
    """

    probes: int = 0  # number of the host's probes that arrived here
    round_trips_ns: list[int] = field(default_factory=list)  # round trips of this part's probes
    train: list[int] = field(default_factory=list)  # arrival time of each frame of the host's train


class Underlay:
    """Sends, returns and counts the measuring frames of one part, with one socket for each tunnel's
    device.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._me = 0
        self._sockets: dict[str, socket.socket] = {}
        self._heard: dict[int, Heard] = {}

    def listen(self, message: Message) -> None:
        """Opens the devices of the message {netns, devices, me}. From then on, counts measuring frames to
        host number `me` and returns the probes among them to their sender; raises LabError if a device cannot
        be opened.
        """
        self._me = message["me"]
        for device in message["devices"]:
            made = _opened(message["netns"], device)
            self._sockets[device] = made
            self._loop.watch(made.fileno(), lambda d=device: self._readable(d))  # type: ignore[misc]

    def send(self, message: Message) -> None:
        """Sends the frames of the message {to: [{device, host}], kind, count, size, interval_ns}: each number
        goes to every host in `to` before the next number, back to back if `interval_ns` is 0. A frame for
        which a queue or buffer is full is not sent again.
        """
        start = time.monotonic_ns()
        for number in range(message["count"]):
            if interval := message["interval_ns"]:
                due = self._loop.clock.offset_ns + start + number * interval
                self._loop.sleep_until(due)
            for goal in message["to"]:
                self._transmit(goal["device"], message["kind"], goal["host"], number, message["size"])

    def heard(self, _: Message) -> dict[str, Any]:
        """Returns the frames received since `listen`, by the number of the sending host; closes the sockets
        and clears the counts.
        """
        found = {str(n): vars(heard) for n, heard in self._heard.items()}
        for made in self._sockets.values():
            self._loop.unwatch(made.fileno())
            made.close()
        self._sockets.clear()
        self._heard = {}
        return found

    def _transmit(self, device: str, kind: int, to: int, number: int, size: int) -> None:
        head = HEAD.pack(MARK, kind, to, self._me, number, time.monotonic_ns())
        self._put(device, head.ljust(size, b"\0"))

    def _put(self, device: str, payload: bytes) -> None:
        frame = GROUP + self._sockets[device].getsockname()[4][:6] + struct.pack("!H", ETHERTYPE) + payload
        try:
            self._sockets[device].send(frame)
        except OSError as error:
            if error.errno not in FULL:  # an unsent frame counts as lost
                raise LabError(f"tunnel {device}: {error.strerror}") from error

    def _readable(self, device: str) -> None:
        while True:
            try:
                data, about = self._sockets[device].recvfrom(READ_BYTES)
            except BlockingIOError:
                return
            if about[2] != OUTGOING and data[12:14] == struct.pack("!H", ETHERTYPE):
                self._take(device, data[14:])

    def _take(self, device: str, payload: bytes) -> None:
        now = time.monotonic_ns()
        mark, kind, to, sender, number, sent_ns = HEAD.unpack_from(payload.ljust(HEAD.size, b"\0"))
        if mark != MARK or to != self._me:
            return
        heard = self._heard.setdefault(sender, Heard())
        if kind == PROBE:
            heard.probes += 1
            self._put(
                device, HEAD.pack(MARK, ECHO, sender, self._me, number, sent_ns).ljust(len(payload), b"\0")
            )
        elif kind == ECHO:
            heard.round_trips_ns.append(now - sent_ns)
        else:
            heard.train.append(now)


def _opened(netns: str, device: str) -> socket.socket:
    """Opens a non-blocking packet socket on a device of a namespace, with large buffers. A thread enters the
    namespace and ends. Raises LabError if that fails.
    """
    made: list[socket.socket] = []
    failed: list[OSError] = []

    def work() -> None:
        try:
            enter(netns)
            one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            one.bind((device, ETH_P_ALL))
            for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
                one.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
            one.setblocking(False)
            made.append(one)
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failed:
        raise LabError(f"tunnel {device} in {netns}: {failed[0].strerror}")
    return made[0]
