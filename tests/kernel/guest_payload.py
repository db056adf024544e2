"""Runs in a guest in place of the lab process: makes two namespaces and a link with a delay, then serves a
control socket that repeats its input. Arguments: the guest's state directory, and a further action (`wait`,
`panic`, `memory`, `exit`).
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

LINES = """netns add a
netns add b
link add va netns a type veth peer name vb netns b
-n a addr add 10.0.0.1/24 dev va
-n b addr add 10.0.0.2/24 dev vb
-n a link set va up
-n b link set vb up"""
CLIENT = """
import socket, time
s = socket.create_connection(("10.0.0.2", 7))
times = []
for _ in range(5):
    before = time.monotonic(); s.sendall(b"x"); s.recv(1); times.append(time.monotonic() - before)
print(min(times))
"""
SERVER = """
import socket
s = socket.create_server(("10.0.0.2", 7)); print("up", flush=True)
c, _ = s.accept()
while data := c.recv(99): c.sendall(data)
"""


def emit(**message: object) -> None:
    print(json.dumps(message), flush=True)


def run(command: str) -> str:
    return subprocess.run(command.split(), check=True, capture_output=True, text=True).stdout


def python_in(namespace: str, code: str) -> subprocess.Popen[str]:
    argv = ["ip", "netns", "exec", namespace, sys.executable, "-S", "-c", code]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def round_trip_s() -> float:
    for line in LINES.splitlines():
        run(f"ip {line}")
    run("tc -n a qdisc add dev va root netem delay 20ms")
    server = python_in("b", SERVER)
    assert server.stdout and server.stdout.readline() == "up\n"
    answer, _ = python_in("a", CLIENT).communicate(timeout=30)
    return float(answer)


def serve(path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    emit(event="ready")
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                client, _ = listener.accept()
                selector.register(client, selectors.EVENT_READ, client.makefile("rwb", buffering=0))
            elif line := key.data.readline():
                request = json.loads(line)
                key.data.write(
                    json.dumps({"id": request["id"], "ok": True, "data": request["data"]}).encode() + b"\n"
                )
            else:
                selector.unregister(key.fileobj)


def bye(*_: object) -> None:
    emit(event="end", status=7)
    sys.exit(7)


def main() -> None:
    signal.signal(signal.SIGINT, bye)
    signal.signal(signal.SIGTERM, bye)
    state, what = Path(sys.argv[1]), sys.argv[2]
    if what == "panic":
        Path("/proc/sys/vm/panic_on_oom").write_text("2")
        hoard = [b"x" * (1 << 24) for _ in range(1000)]
        print(len(hoard))
    if what == "exit":
        sys.stderr.write("the payload leaves\n")
        Path(sys.argv[3], "result").write_text("measured\n")
        sys.exit(5)
    emit(
        event="facts", round_trip_s=round_trip_s(), uid=os.getuid(), time_s=time.time(),
        controllers=Path("/sys/fs/cgroup/cgroup.subtree_control").read_text().split(),
        kernel=json.loads(os.environ["VNET_KERNEL"]), machine=json.loads(os.environ["VNET_MACHINE"]),
    )  # fmt: skip
    serve(state / "control.sock")


if __name__ == "__main__":
    main()
