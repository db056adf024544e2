"""Simulates a lab for the live page, and makes a client of the page's server."""

from __future__ import annotations

import base64
import json
import socketserver
import threading
import time
from pathlib import Path
from typing import Any

from command_line import PROJECT
from starlette.testclient import TestClient

from contract.codec import from_json, to_json
from contract.plan import Plan
from orchestrator.cli.page import network
from orchestrator.cli.page.app import Settings, application
from orchestrator.lab.errors import LabError
from orchestrator.lab.files import part
from orchestrator.plan.build import make_plan
from orchestrator.topology import load

HOST = "127.0.0.1:8350"
ORIGIN = {"Origin": f"http://{HOST}"}
WS = f"ws://{HOST}"
HOSTILE = "</script><img src=x onerror=alert(1)>"


class StandIn(socketserver.ThreadingUnixStreamServer):
    """Serves a lab's control socket from a run directory, and records all requests."""

    daemon_threads = True

    def __init__(self, state_dir: Path, run_dir: Path) -> None:
        state_dir.mkdir(parents=True)
        (state_dir / "lock").touch()
        about = {"lab": state_dir.name, "kernel": "fake", "time": "real", "run_dir": str(run_dir)}
        (state_dir / "lab.json").write_text(json.dumps({**about, "processes": []}))
        self.run_dir = run_dir
        self.asked: list[dict[str, Any]] = []
        self.open = 0
        self.dies = False  # whether the lab dies at the next request
        self.goes_on = threading.Event()  # while it is cleared, the lab answers nothing
        self.goes_on.set()
        super().__init__(str(state_dir / "control.sock"), Client)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        op = request["op"]
        if op == "fetch":
            return part(self.run_dir, request["path"], request["offset"], request.get("length"))
        if op == "status":
            return {
                "ready": True,
                "phase": "hold",
                "serving": False,
                "nodes": 2,
                "run_dir": str(self.run_dir),
                "state": "running",
                "warnings": [{"code": "plan", "text": HOSTILE, "remedy": "", "suspect": False}],
            }
        if op == "inspect":
            return network.planned(from_json(Plan, (self.run_dir / "plan.json").read_text()))
        if op == "measure":
            return {"samples": True}
        if op == "link":
            return {
                "link": request["link"],
                "down": False,
                **{s: request[s] for s in ("forward", "reverse") if s in request},
            }
        if op == "capture":
            return {"name": request.get("name", "live-node-broker"), "at": request.get("at", "node broker")}
        return {"ready": True}


class Client(socketserver.StreamRequestHandler):
    server: StandIn

    def handle(self) -> None:
        self.server.open += 1
        try:
            for line in self.rfile:
                request = json.loads(line)
                self.server.goes_on.wait()
                if self.server.dies:
                    return
                self.server.asked.append(request)
                if request["op"] in ("exec", "input", "resize"):
                    self._shell(request)
                    continue
                try:
                    answer = {"ok": True, **self.server.answer(request)}
                except LabError as error:
                    answer = {"ok": False, "error": str(error)}
                self.wfile.write(json.dumps({"id": request["id"], **answer}).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            self.server.open -= 1

    def _shell(self, request: dict[str, Any]) -> None:
        """Simulates a shell that repeats its input and ends at `exit`."""
        said = base64.b64decode(request.get("data", ""))
        if request["op"] == "exec":
            self._exec, said = request["id"], b"y" * 9 * 2**20 if request["node"] == "flood" else b"$ "
        self._say({"id": self._exec, "event": "output", "data": base64.b64encode(said).decode()})
        if said == b"exit":
            self._say({"id": self._exec, "ok": True, "status": 3})

    def _say(self, message: dict[str, Any]) -> None:
        self.wfile.write(json.dumps(message).encode() + b"\n")


def planned(topology: str) -> dict[str, Any]:
    """Returns the plan of a shipped topology as in a run directory's plan.json."""
    file = PROJECT / "topologies" / f"{topology}.yaml"
    found: dict[str, Any] = json.loads(to_json(make_plan(load(file, {}))))
    return found


def served(results: Path, **more: Any) -> tuple[TestClient, Any]:
    """Returns a client with the token of a live page of these results, and the page's watches."""
    hosts = frozenset(more.pop("hosts", {HOST}))
    app, watches = application(Settings("secret", hosts, results, every_s=0.02, **more))
    return TestClient(app, base_url=f"http://{HOST}", cookies={"vnet-8350": "secret"}), watches


def until(socket: Any, kind: str) -> list[dict[str, Any]]:
    """Returns the frames up to the first of `kind`."""
    found = [socket.receive_json()]
    while found[-1]["kind"] != kind:
        found.append(socket.receive_json())
    return found


def wait_for(probe: Any) -> None:
    """Waits until `probe` returns true. The deadline is only against hangs: a busy machine may be slow."""
    deadline = time.monotonic() + 180
    while not probe():
        assert time.monotonic() < deadline
        time.sleep(0.02)
