"""Carries connections of nodes to endpoints outside the lab: one address and one port each, TCP.

No packet of a node leaves the lab. A socket in the node's namespace listens at the endpoint's address, on the
loopback device only, so that the node alone reaches it and no other through it. This process accepts the
connection, opens one of its own from the machine to the same endpoint, and copies bytes between the two.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import selectors
import socket
import threading
from dataclasses import dataclass, field

from contract.plan import Node, Plan, Step
from orchestrator.lab.entering import enter
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning
from orchestrator.lab.lab import Lab
from orchestrator.language.endpoints import split

CHUNK = 65536
MOST_WAITING = 1 << 18  # bytes that wait for one side before the other is no longer read
MOST_CONNECTIONS = 256  # of one lab at once; more are refused
BACKLOG = 16
DEVICE = b"lo"


def steps(node: Node) -> list[Step]:
    """Returns the steps that give the node's loopback device the addresses of its endpoints."""
    found = []
    for address in dict.fromkeys(split(text)[0] for text in node.outside):
        parsed = ipaddress.ip_address(address)
        if not parsed.is_loopback:
            length = f"/{parsed.max_prefixlen}{' nodad' if parsed.version == 6 else ''}"
            reason = f"{node.name} reaches {address} outside the lab"
            found.append(Step("ip", node.netns, f"address add {address}{length} dev lo\n", reason, node.host))
    return found


@dataclass
class Count:
    """The connections and bytes that one endpoint of a node carried."""

    connections: int = 0
    refused: int = 0
    bytes_out: int = 0
    bytes_in: int = 0


@dataclass(eq=False)
class _Side:
    """One end of a connection. waiting: bytes that are to be written to it; ended: its peer sends no more."""

    socket: socket.socket
    count: Count
    out: bool  # whether it is the end outside
    peer: _Side | None = None
    waiting: bytearray = field(default_factory=bytearray)
    connected: bool = True
    ended: bool = False
    read_all: bool = False


class Outside:
    """Listens for the nodes of a lab and carries their connections, in a thread of its own, until `close`."""

    def __init__(self, plan: Plan) -> None:
        self.counts: dict[tuple[str, str], Count] = {}
        self._selector = selectors.DefaultSelector()
        self._sides: set[_Side] = set()
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._listeners = self._listen(plan)
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends all connections and the thread; does nothing the second time."""
        if self._thread.is_alive():
            self._wake.send(b"x")
            self._thread.join()

    def _listen(self, plan: Plan) -> list[socket.socket]:
        """Opens one listening socket for each endpoint, inside its node; raises LabError if one cannot be."""
        made: list[socket.socket] = []
        failed: list[str] = []

        # runs in a thread of its own, because a thread stays in the namespace that it entered
        def inside() -> None:
            for node in plan.nodes:
                if node.outside:
                    try:
                        enter(node.netns)
                        for text in node.outside:
                            listener = _listener(text)
                            made.append(listener)
                            count = self.counts.setdefault((node.name, text), Count())
                            self._selector.register(listener, selectors.EVENT_READ, (text, count))
                    except OSError as error:
                        failed.append(f"nodes.{node.name}.outside: {error.strerror}")

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        if failed:
            for one in made:
                one.close()
            raise LabError("; ".join(failed))
        return made

    def _carry(self) -> None:
        while True:
            for key, mask in self._selector.select():
                if key.data is None:
                    self._end()
                    return
                if isinstance(key.data, _Side):
                    if key.data in self._sides:
                        self._serve(key.data, mask)
                else:
                    self._accept(key.fileobj, *key.data)  # type: ignore[arg-type]  # a listening socket

    def _end(self) -> None:
        for side in list(self._sides):
            side.socket.close()
        for one in (*self._listeners, self._wake, self._woken):
            one.close()
        self._selector.close()

    def _accept(self, listener: socket.socket, text: str, count: Count) -> None:
        try:
            inner, _ = listener.accept()
        except OSError:
            return  # the program has gone again
        if len(self._sides) >= 2 * MOST_CONNECTIONS:
            count.refused += 1
            _reset(inner)
            return
        address, port = split(text)
        outer = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        inner.setblocking(False)
        outer.setblocking(False)
        count.connections += 1
        near, far = _Side(inner, count, out=False), _Side(outer, count, out=True, connected=False)
        near.peer, far.peer = far, near
        self._sides |= {near, far}
        error = outer.connect_ex((address, port))
        for side in (near, far):
            self._selector.register(side.socket, selectors.EVENT_READ, side)
        if error not in (0, errno.EINPROGRESS):
            self._break(near)
            return
        self._watch(far)
        self._watch(near)

    def _serve(self, side: _Side, mask: int) -> None:
        try:
            if not side.connected:
                if error := side.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(error, "no connection")
                side.connected = True
            if mask & selectors.EVENT_READ:
                self._read(side)
            self._write(side)
        except BlockingIOError:
            pass
        except OSError:
            side.count.refused += side.out and not side.connected
            self._break(side)
            return
        assert side.peer is not None
        if all(one.read_all and not one.waiting for one in (side, side.peer)):
            self._drop(side)
            return
        self._watch(side)
        self._watch(side.peer)

    def _read(self, side: _Side) -> None:
        assert side.peer is not None
        data = side.socket.recv(CHUNK)
        if not data:
            side.read_all = side.peer.ended = True
        elif side.out:
            side.count.bytes_in += len(data)
        else:
            side.count.bytes_out += len(data)
        side.peer.waiting += data
        if side.peer.connected:
            with contextlib.suppress(BlockingIOError):
                self._write(side.peer)

    def _write(self, side: _Side) -> None:
        if side.waiting:
            del side.waiting[: side.socket.send(side.waiting)]
        if side.ended and not side.waiting:
            with contextlib.suppress(OSError):  # the other end has gone already
                side.socket.shutdown(socket.SHUT_WR)

    def _watch(self, side: _Side) -> None:
        """Waits for what the side can do next: not for reading while its peer has much to write."""
        assert side.peer is not None
        reads = side.connected and not side.read_all and len(side.peer.waiting) < MOST_WAITING
        writes = bool(side.waiting) or not side.connected
        wanted = selectors.EVENT_READ * reads | selectors.EVENT_WRITE * writes
        known = side.socket.fileno() in self._selector.get_map()
        if wanted and known:
            self._selector.modify(side.socket, wanted, side)
        elif wanted:
            self._selector.register(side.socket, wanted, side)
        elif known:
            self._selector.unregister(side.socket)

    def _break(self, side: _Side) -> None:
        """Ends a connection by a reset at both ends, as the program would see it without the relay."""
        assert side.peer is not None
        for one in (side, side.peer):
            self._forget(one)
            _reset(one.socket)

    def _drop(self, side: _Side) -> None:
        assert side.peer is not None
        for one in (side, side.peer):
            self._forget(one)
            one.socket.close()

    def _forget(self, side: _Side) -> None:
        self._sides.discard(side)
        if side.socket.fileno() in self._selector.get_map():
            self._selector.unregister(side.socket)


def _listener(text: str) -> socket.socket:
    address, port = split(text)
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, DEVICE)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def _reset(connection: socket.socket) -> None:
    linger = b"\x01\0\0\0\0\0\0\0"  # struct linger: on, 0 s
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    connection.close()


def begin(lab: Lab) -> None:
    """Opens the way to the endpoints of the lab's nodes until the lab ends, and warns of each node that has
    some. A simulated lab has no way.
    """
    nodes = [node for node in lab.plan.nodes if node.outside]
    for node in nodes:
        text = f"{node.name} reaches {' and '.join(node.outside)} outside the lab"
        remedy = "that way is not impaired, proven or repeated; take the endpoint into the lab to have it so"
        lab.events.warn(Warning("outside", text, remedy))
    if not nodes or lab.driver.name == "fake":
        return
    for step in (step for node in nodes for step in steps(node)):
        lab.driver.apply(step)
    outside = Outside(lab.plan)
    lab.on_end.append(lambda: _tell(lab, outside))


def _tell(lab: Lab, outside: Outside) -> None:
    """Ends the ways and states what each carried, as an event of the run."""
    outside.close()
    for (node, text), count in outside.counts.items():
        said = (
            f"{node} to {text}: {count.connections} connections, {count.refused} of them refused, "
            f"{count.bytes_out} bytes out, {count.bytes_in} bytes in"
        )
        lab.events.warn(Warning("outside", said, "the report counts none of it", suspect=False))
