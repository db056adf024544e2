"""Measures the memory of a lab by its parts on the host kernel, the source of the constants in
orchestrator/plan/predict.py.

Idle nodes: PSS of their agents, and the kernel's memory for them (namespaces, interfaces, stacks, page
tables), taken as the growth of the machine's unreclaimable memory, which other work also changes. Under load:
PSS of client nodes, broker, tcpdump, lab process, launcher and `vnet run` in the hold of `mqtt.yaml`, and of
client nodes in that of `http.yaml`, with HTTP/1.1 and HTTP/2.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from commands import ROOT, VNET, as_root, reads, timed, wait_for_hold

BENCH = Path(__file__).parent
IDLE, MANY, CONSUMERS = 1000, 350, 100
MODELS = ("pub-sub", "pgm")
KERNEL = ("SUnreclaim", "Percpu", "KernelStack", "PageTables")
Sizes = dict[str, float]  # bytes by part


def kernel_bytes() -> int:
    found = dict(re.findall(r"^(\w+):\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE))
    return sum(int(found[name]) for name in KERNEL) * 1024


def pss_bytes(pids: Iterable[int]) -> list[int]:
    texts = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids]
    return [
        int(size) * 1024 for text in texts for size in re.findall(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    ]


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


def children(pid: int) -> dict[int, str]:
    """Returns the names of the programs that a process has started, by process id."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(child): Path(f"/proc/{child}/comm").read_text().strip() for child in found}


def own_processes(lab: str) -> Sizes:
    """Returns the PSS of the lab's own processes (lab process and launcher) in bytes."""
    state = json.loads((Path("/run/vnet") / lab / "lab.json").read_text())
    return {p["role"]: pss_bytes([p["pid"]])[0] for p in state["processes"]}


def agents(lab: str) -> dict[str, int]:
    nodes = json.loads(reads(str(VNET), "inspect", lab, "--json"))["nodes"]
    return {name: int(node["pid"]) for name, node in nodes.items()}


def idle(count: int) -> Sizes:
    lab = f"memory-{os.getpid()}"
    before = kernel_bytes()
    up = (str(VNET), "up", str(BENCH / "nodes.yaml"), "-p", f"nodes={count}", "--lab", lab)
    with tempfile.TemporaryDirectory() as out:
        timed(*up, "--kernel", "host", "--results", out)
        try:
            kernel = (kernel_bytes() - before) / count
            return {"kernel": kernel, "agent": mean(pss_bytes(agents(lab).values())), **own_processes(lab)}
        finally:
            timed(str(VNET), "down", lab)


def loaded(clients: int) -> Sizes:
    """Returns the PSS of a lab's parts in the middle of the hold, when all clients are connected."""
    lab = f"memory-{os.getpid()}"
    run = [str(VNET), "run", str(BENCH / "mqtt.yaml"), "--kernel", "host", "--lab", lab, "--json"]
    with tempfile.TemporaryDirectory() as out:
        process = subprocess.Popen(
            [*run, "-p", f"clients={clients}", "--results", out], stdout=subprocess.DEVNULL
        )
        wait_for_hold(process, Path(out))
        time.sleep(2)
        pids = agents(lab)
        state = json.loads((Path("/run/vnet") / lab / "lab.json").read_text())
        lab_pid = next(p["pid"] for p in state["processes"] if p["role"] == "lab")
        programs = [*children(lab_pid).items(), *children(pids["broker"]).items()]
        found = {
            comm: float(pss_bytes([pid])[0]) for pid, comm in programs if comm in ("mosquitto", "tcpdump")
        }
        found |= {
            "command": pss_bytes([process.pid])[0],
            "client": mean(pss_bytes(p for n, p in pids.items() if n.startswith("client"))),
        }
        found |= own_processes(lab)
        if process.wait():
            raise SystemExit(f"memory.py: vnet run ended with status {process.returncode}")
    return found


def http_client(clients: int, version: str) -> float:
    """Returns the mean PSS in bytes of the agents of HTTP clients in the hold, after several requests."""
    lab = f"memory-{os.getpid()}"
    run = [str(VNET), "run", str(BENCH / "http.yaml"), "--kernel", "host", "--lab", lab, "--json", "--raw"]
    run += ["-p", f"clients={clients}", "-p", f"version={version}"]
    with tempfile.TemporaryDirectory() as out:
        process = subprocess.Popen([*run, "--results", out], stdout=subprocess.DEVNULL)
        wait_for_hold(process, Path(out))
        time.sleep(5)
        found = mean(pss_bytes(pid for name, pid in agents(lab).items() if name.startswith("client")))
        if process.wait():
            raise SystemExit(f"memory.py: vnet run ended with status {process.returncode}")
    return found


def consumer(model: str) -> float:
    """Returns the mean PSS in bytes of the agents that have loaded libzmq and received two updates."""
    lab = f"memory-{os.getpid()}"
    topology = ROOT / "topologies" / "papers" / f"interaction-{model}.yaml"
    run = [str(VNET), "run", str(topology), "--kernel", "host", "--lab", lab, "--json", "-p", "network=ideal"]
    run += ["-p", f"consumers={CONSUMERS}", "-p", "settle=2s", "-p", "hold=60s", "-p", "patience=10s"]
    with tempfile.TemporaryDirectory() as out:
        process = subprocess.Popen([*run, "--results", out], stdout=subprocess.DEVNULL)
        wait_for_hold(process, Path(out))
        time.sleep(52)
        found = mean(pss_bytes(pid for name, pid in agents(lab).items() if name.startswith("consumer")))
        if process.wait():
            raise SystemExit(f"memory.py: vnet run ended with status {process.returncode}")
    return found


def row(name: str, value: float, peer: str, against: float) -> dict[str, object]:
    return {"name": name, "value": value / 1e6, "unit": "MB", "peer": peer, "ratio": value / against}


def main() -> None:
    as_root()
    sys.path.insert(0, str(ROOT))
    from orchestrator.plan import predict
    from orchestrator.software.mosquitto import MEMORY_BYTES
    from orchestrator.software.mqtt.kind import MEMORY_AT_BROKER_BYTES

    empty, many = idle(IDLE), loaded(MANY)
    web = {version: http_client(MANY, version) for version in ("1.1", "2")}
    print(f"memory.py: {IDLE} idle: {empty}; {MANY} clients: {many}", file=sys.stderr)
    reckoned = MEMORY_BYTES + MANY * MEMORY_AT_BROKER_BYTES
    libzmq = {model: consumer(model) for model in MODELS}
    node = empty["kernel"] + many["client"]
    rows = [
        row("PSS of a client's agent", many["client"], "0.3 MB allowed", 300_000),
        *(
            row(f"PSS of an HTTP/{version} client's agent", pss, "0.3 MB allowed", 300_000)
            for version, pss in web.items()
        ),
        *(
            row(f"PSS of a consumer's agent with libzmq ({model})", pss, "6 MB allowed", 6e6)
            for model, pss in libzmq.items()
        ),
        row("a client's node with the kernel's share", node, "reckoned", predict.NODE_BYTES),
        row(f"broker of {MANY} clients (PSS)", many["mosquitto"], "reckoned", reckoned),
        row("tcpdump (PSS)", many["tcpdump"], "reckoned", predict.CAPTURE_BYTES),
        row(
            "lab process, launcher, vnet run (PSS)",
            sum(many[part] for part in ("lab", "launcher", "command")),
            "reckoned",
            predict.LAB_BYTES,
        ),
    ]
    json.dump(rows, sys.stdout)


main()
