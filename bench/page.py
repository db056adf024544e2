"""What the live page costs its server: one viewer of a lab of 350 nodes, asked once a second."""

from __future__ import annotations

import json
import os
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

from commands import ROOT, VNET
from websockets.sync.client import connect

NODES = 350
SECONDS = 20
ALLOWED_SHARE = 0.05  # of a core
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Lab(socketserver.ThreadingUnixStreamServer):
    """A lab's control socket in front of a run directory that grows."""

    daemon_threads = True

    def __init__(self, state: Path, run_dir: Path) -> None:
        from orchestrator.cli.page import network

        self.run_dir = run_dir
        self.plan = json.loads((run_dir / "plan.json").read_text())
        self.inspected = network.planned(self.plan)
        super().__init__(str(state / "control.sock"), Client)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Client(socketserver.StreamRequestHandler):
    server: Lab

    def handle(self) -> None:
        from orchestrator.lab.files import part

        for line in self.rfile:
            request = json.loads(line)
            answer: dict[str, Any] = {"samples": True, "ready": True}
            if request["op"] == "fetch":
                answer = part(self.server.run_dir, request["path"], request["offset"], request.get("length"))
            elif request["op"] == "status":
                where = str(self.server.run_dir)
                answer |= {"phase": "hold", "serving": False, "warnings": [], "run_dir": where}
            elif request["op"] == "inspect":
                answer = self.server.inspected
            self.wfile.write(json.dumps({"id": request["id"], "ok": True, **answer}).encode() + b"\n")


def grow(raw: Path, plan: dict[str, Any], second: int) -> None:
    """A second's samples of every node and link, and 100 messages."""
    at = (1_800_000_000 + second) * 10**9
    with (raw / "nodes.csv").open("a") as file:
        for n, node in enumerate(plan["nodes"]):
            cpu_ns, sums = second * (n + 1) * 10**5, f"{second * 999},{second},{second * 99},{second}"
            file.write(f"{at},{node['name']},{cpu_ns},{sums},3000000\n")
    with (raw / "links.csv").open("a") as file:
        for link in plan["links"]:
            for side in ("forward", "reverse"):
                file.write(f"{at},{link['name']},{side},{second * 10**5},{second * 100},0,0,0,0\n")
    with (raw / "messages.csv").open("a") as file:
        for n in range(100):
            number = second * 100 + n
            file.write(f"S,0,{number},717,{at},{at + 9},{at + 99},1,settled\n")
            file.write(f"R,0,{number},reader,0,{at + 10**7},0\n")


def cpu_s(pid: int) -> float:
    """User and system time of a process (fields 14 and 15 of /proc/PID/stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def measured(home: Path) -> float:
    """Share of a core that the server takes."""
    from orchestrator.model.codec import to_json
    from orchestrator.plan.build import make_plan
    from orchestrator.topology import load

    run_dir, state = home / "results" / "big" / "1", home / "state" / "big"
    (run_dir / "raw").mkdir(parents=True)
    state.mkdir(parents=True)
    topology = load(ROOT / "topologies" / "mqtt-many-to-one.yaml", {"clients": str(NODES)})
    (run_dir / "plan.json").write_text(to_json(make_plan(topology)))
    (run_dir / "manifest.json").write_text(json.dumps({"lab": "big", "state": "running", "t0_ns": 1}))
    (state / "lab.json").write_text(json.dumps({"lab": "big", "run_dir": str(run_dir), "processes": []}))
    lab = Lab(state, run_dir)
    server = subprocess.Popen(
        [str(VNET), "serve", "--port", "0", "--results", str(home / "results")],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "VNET_STATE_DIR": str(home / "state")},
    )  # fmt: skip
    try:
        assert server.stderr is not None
        address = server.stderr.readline().split()[1]
        base, jar = address.partition("/?")[0], CookieJar()
        urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar)).open(address, timeout=60).close()
        headers = {"Cookie": "; ".join(f"{one.name}={one.value}" for one in jar), "Origin": base}
        socket = base.replace("http", "ws", 1) + "/ws/lab/big"
        with connect(socket, additional_headers=headers, max_size=None) as page:
            for second in range(1, 4):  # the drawing is made once
                grow(run_dir / "raw", lab.plan, second)
                time.sleep(1)
            began, spent = time.monotonic(), cpu_s(server.pid)
            for second in range(4, 4 + SECONDS):
                grow(run_dir / "raw", lab.plan, second)
                due = began + second - 3
                while (left := due - time.monotonic()) > 0:
                    try:
                        page.recv(timeout=left)
                    except TimeoutError:
                        break
            passed = time.monotonic() - began
            return (cpu_s(server.pid) - spent) / passed
    finally:
        server.terminate()
        server.wait(30)
        lab.shutdown()
        lab.server_close()


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        share = measured(Path(home))
    name = f"live page, {NODES} nodes"
    rows = [
        {"name": f"{name}: CPU of the server", "value": share * 100, "unit": "% of core",
         "peer": f"{ALLOWED_SHARE:.0%} of a core allowed", "ratio": share / ALLOWED_SHARE},
    ]  # fmt: skip
    print(json.dumps(rows))
    if share > ALLOWED_SHARE:
        sys.exit(f"page.py: the server takes {share:.1%} of a core, over {ALLOWED_SHARE:.0%}")


if __name__ == "__main__":
    main()
