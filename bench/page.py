"""Measures the live page of a lab of 350 nodes: the CPU of its server with one viewer, and the frames a
second of a browser.

The lab's files grow every second. In the browser every group is unfolded and the map is dragged all the time.
"""

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

from contract.plan import Plan

NODES = 350
SECONDS = 20
ALLOWED_SHARE = 0.05  # share of a core
LEAST_FRAMES = 30  # frames a second
WATCHED_S = 8
CHROMIUM = "/usr/bin/chromium"
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Lab(socketserver.ThreadingUnixStreamServer):
    """Simulates a lab for `vnet serve`: answers on a control socket in front of a run directory
    that grows.
    """

    daemon_threads = True

    def __init__(self, state: Path, run_dir: Path) -> None:
        from contract.rundir import read_plan
        from orchestrator.cli.page import network

        self.run_dir = run_dir
        self.plan = read_plan(run_dir)
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
                answer |= {"nodes": NODES + 2, "state": "running"}
            elif request["op"] == "inspect":
                answer = self.server.inspected
            self.wfile.write(json.dumps({"id": request["id"], "ok": True, **answer}).encode() + b"\n")


def grow(raw: Path, plan: Plan, second: int) -> None:
    """Appends one second's samples of every node and link, and 100 messages, to the raw files."""
    at = (1_800_000_000 + second) * 10**9
    with (raw / "nodes.csv").open("a") as file:
        for n, node in enumerate(plan.nodes):
            cpu_ns, sums = second * (n + 1) * 10**5, f"{second * 999},{second},{second * 99},{second}"
            file.write(f"{at},{node.name},{cpu_ns},{sums},3000000\n")
    with (raw / "links.csv").open("a") as file:
        for link in plan.links:
            for side in ("forward", "reverse"):
                file.write(f"{at},{link.name},{side},{second * 10**5},{second * 100},0,0,0,0\n")
    with (raw / "messages.csv").open("a") as file:
        for n in range(100):
            number = second * 100 + n
            file.write(f"S,0,{number},717,{at},{at + 9},{at + 99},1,settled\n")
            file.write(f"R,0,{number},reader,0,{at + 10**7},0\n")


def cpu_s(pid: int) -> float:
    """Returns the user and system time of a process in seconds (fields 14 and 15 of /proc/PID/stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


class Served:
    """A `vnet serve` process and a simulated running lab of NODES nodes that it shows."""

    def __init__(self, home: Path) -> None:
        from contract.codec import to_json
        from orchestrator.plan.build import make_plan
        from orchestrator.topology import load

        self.run_dir, state = home / "results" / "big" / "1", home / "state" / "big"
        (self.run_dir / "raw").mkdir(parents=True)
        state.mkdir(parents=True)
        topology = load(ROOT / "bench" / "page.yaml", {"nodes": str(NODES)})
        (self.run_dir / "plan.json").write_text(to_json(make_plan(topology)))
        (self.run_dir / "manifest.json").write_text(
            json.dumps({"lab": "big", "state": "running", "t0_ns": 1})
        )
        about = {"lab": "big", "run_dir": str(self.run_dir), "processes": []}
        (state / "lab.json").write_text(json.dumps(about))
        self.second = 0
        self.lab = Lab(state, self.run_dir)
        self.server = subprocess.Popen(
            [str(VNET), "serve", "--port", "0", "--results", str(home / "results")],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "VNET_STATE_DIR": str(home / "state")},
        )  # fmt: skip
        assert self.server.stderr is not None
        self.address = self.server.stderr.readline().split()[1]

    def grow(self) -> None:
        """Writes the data of the next second."""
        self.second += 1
        grow(self.run_dir / "raw", self.lab.plan, self.second)

    def close(self) -> None:
        self.server.terminate()
        self.server.wait(30)
        self.lab.shutdown()
        self.lab.server_close()


def server_share(served: Served) -> float:
    """Returns the share of a core that the server uses while one viewer watches."""
    base, jar = served.address.partition("/?")[0], CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    opener.open(served.address, timeout=60).close()
    headers = {"Cookie": "; ".join(f"{one.name}={one.value}" for one in jar), "Origin": base}
    socket = base.replace("http", "ws", 1) + "/ws/lab/big"
    with connect(socket, additional_headers=headers, max_size=None) as page:
        for _ in range(3):  # the drawing is made once
            served.grow()
            time.sleep(1)
        began, spent = time.monotonic(), cpu_s(served.server.pid)
        for second in range(1, 1 + SECONDS):
            served.grow()
            due = began + second
            while (left := due - time.monotonic()) > 0:
                try:
                    page.recv(timeout=left)
                except TimeoutError:
                    break
        passed = time.monotonic() - began
        return (cpu_s(served.server.pid) - spent) / passed


COUNT_FRAMES = """async (seconds) => {
  const map = document.querySelector("#map svg");
  const moved = (kind, x) => new PointerEvent(kind, {bubbles: true, clientX: x, clientY: 300});
  map.dispatchEvent(moved("pointerdown", 400));
  const began = performance.now();
  let frames = 0, last = began, longest = 0;
  await new Promise((done) => {
    const next = (now) => {
      frames += 1; longest = Math.max(longest, now - last); last = now;
      window.dispatchEvent(moved("pointermove", 400 + 200 * Math.sin(frames / 20)));
      if (now - began < seconds * 1000) requestAnimationFrame(next); else done();
    };
    requestAnimationFrame(next);
  });
  window.dispatchEvent(moved("pointerup", 400));
  return {frames: frames / seconds, longest};
}"""


def frames_per_s(served: Served, picture: str | None) -> tuple[float, float]:
    """Returns the frames a second, and the longest gap in ms, of a browser whose map of all nodes
    is dragged.
    """
    from playwright.sync_api import sync_playwright

    over = threading.Event()

    def live() -> None:
        while not over.wait(1):
            served.grow()

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(served.address)
        page.goto(served.address.partition("/?")[0] + "/lab/big")
        page.locator("#unfold").click(timeout=60_000)
        page.locator(".box.node").nth(NODES).wait_for()
        growing = threading.Thread(target=live)
        growing.start()
        page.wait_for_timeout(2000)
        found = page.evaluate(COUNT_FRAMES, WATCHED_S)
        if picture:
            page.locator("#fit").click()
            page.screenshot(path=picture)
        over.set()
        growing.join()
        browser.close()
    return found["frames"], found["longest"]


def main() -> None:
    failed = []
    with tempfile.TemporaryDirectory() as home:
        served = Served(Path(home))
        try:
            share = server_share(served)
            name = f"live page, {NODES} nodes"
            rows = [
                {"name": f"{name}: CPU of the server", "value": share * 100, "unit": "% of core",
                 "peer": f"{ALLOWED_SHARE:.0%} of a core allowed", "ratio": share / ALLOWED_SHARE},
            ]  # fmt: skip
            if share > ALLOWED_SHARE:
                failed.append(f"the server takes {share:.1%} of a core, over {ALLOWED_SHARE:.0%}")
            if Path(CHROMIUM).exists():
                frames, longest = frames_per_s(served, os.environ.get("VNET_PICTURE"))
                rows += [
                    {"name": f"{name}, unfolded and dragged: frames of a browser that draws in software",
                     "value": frames, "unit": "1/s", "peer": f"{LEAST_FRAMES} wanted",
                     "ratio": frames / LEAST_FRAMES},
                    {"name": f"{name}, the same: longest gap", "value": longest, "unit": "ms",
                     "peer": f"{1000 / LEAST_FRAMES:.0f} ms between the frames wanted",
                     "ratio": longest * LEAST_FRAMES / 1000},
                ]  # fmt: skip
                if frames < LEAST_FRAMES:
                    failed.append(f"{frames:.0f} frames a second, under {LEAST_FRAMES}")
        finally:
            served.close()
    print(json.dumps(rows))
    if failed:
        sys.exit(f"page.py: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
