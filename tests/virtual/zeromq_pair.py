"""Runs one end of a ZeroMQ pair over TCP with the system's libzmq, which reads the time stamp counter.

Arguments: `answer` or `ask`, and the address of the answering end.
"""

from __future__ import annotations

import ctypes
import sys
import time

REQUESTS = 300
REQ, REP, SUB, PUB, SUBSCRIBE = 3, 4, 2, 1, 6
zmq = ctypes.CDLL("libzmq.so.5")
for name in ("zmq_ctx_new", "zmq_socket"):
    getattr(zmq, name).restype = ctypes.c_void_p
context = ctypes.c_void_p(zmq.zmq_ctx_new())


def opened(kind: int, how: str, port: int) -> ctypes.c_void_p:
    s = ctypes.c_void_p(zmq.zmq_socket(context, kind))
    call = zmq.zmq_bind if how == "answer" else zmq.zmq_connect
    assert call(s, f"tcp://{sys.argv[2]}:{port}".encode()) == 0
    if kind == SUB:
        assert zmq.zmq_setsockopt(s, SUBSCRIBE, b"", 0) == 0
    return s


buffer = ctypes.create_string_buffer(1000)
how = sys.argv[1]
one = opened(REP if how == "answer" else REQ, how, 5555)
other = opened(PUB if how == "answer" else SUB, how, 5556)
if how == "answer":
    print("up", flush=True)
    for _ in range(REQUESTS):
        size = zmq.zmq_recv(one, buffer, 1000, 0)
        for _ in range(5):
            zmq.zmq_send(other, buffer, size, 0)
        zmq.zmq_send(one, buffer, size, 0)
else:
    for number in range(REQUESTS):
        zmq.zmq_send(one, bytes(200 + number), 200 + number, 0)
        zmq.zmq_recv(one, buffer, 1000, 0)
        time.sleep(0.001 * (number % 5))
        while zmq.zmq_recv(other, buffer, 1000, 1) >= 0:  # ZMQ_DONTWAIT
            pass
print("end", flush=True)
time.sleep(1)
