"""Describes the nested machine from inside: its ports, and the project's command line as a user calls it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]
RESULTS = Path("/out/results")
PORT_A, PORT_B, MANAGEMENT = "0000:01:00.0", "0000:01:00.1", "0000:00:04.0"
DEVICES = Path("/sys/bus/pci/devices")
PAIR = """
name: {name}
segments: {{lan: {{subnet: 10.9.0.0/24}}}}
nodes: {{near: {{segment: lan}}, far: {{segment: lan{far}}}}}
links: {{cable: {{between: [far, lan], nics: {{a: "{a}", b: "{b}"}}}}}}
run: {{hold: 1 s}}
"""
MACHINE = ", kind: vm, image: builtin-nic, memory: 256 MiB, boot_within: 400 s"


@dataclass(frozen=True)
class Ports:
    """The ports' state, which must be the same after a lab as before it."""

    drivers: tuple[str, ...]
    interfaces: tuple[tuple[Any, ...], ...]
    routes: tuple[str, ...]

    @staticmethod
    def name_of(address: str) -> str:
        return next((d.name for d in (DEVICES / address).glob("net/*")), "")


def ports() -> Ports:
    found = []
    for address in (PORT_A, PORT_B):
        (entry,) = json.loads(ip("-j", "-d", "addr", "show", "dev", Ports.name_of(address)))
        addresses = tuple(a["local"] for a in entry["addr_info"] if a["scope"] == "global")
        state = "UP" in entry["flags"]
        found.append((entry["ifname"], entry["address"], entry["mtu"], state, addresses, entry.get("master")))
    drivers = tuple(driver(address) for address in (PORT_A, PORT_B))
    routes = tuple(sorted(ip("route", "show", "table", "all", "proto", "static").splitlines()))
    return Ports(drivers, tuple(found), routes)


def pair(directory: Path, name: str, a: str = PORT_A, b: str = PORT_B, far: str = "") -> str:
    """Writes a topology file of two light nodes, `far` behind the cable, and returns its path."""
    file = directory / f"{name}.yaml"
    file.write_text(PAIR.format(name=name, a=a, b=b, far=far))
    return str(file)


def guest(directory: Path, name: str, a: str = PORT_A, b: str = PORT_B) -> str:
    """Writes the topology of `pair` with `far` as a virtual machine that has port `a`."""
    return pair(directory, name, a, b, MACHINE)


def driver(address: str) -> str:
    link = DEVICES / address / "driver"
    return link.readlink().name if link.is_symlink() else ""


def ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True).stdout


def vnet(*arguments: str, timeout: float = 400) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "orchestrator.cli.main", *arguments]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=timeout, check=False)
    print(f"$ vnet {' '.join(arguments)}\n{done.stdout}{done.stderr}[{done.returncode}]")
    return done


def until(deadline_s: float, subject: str, probe: Callable[[], bool]) -> None:
    end = time.monotonic() + deadline_s
    while not probe():
        assert time.monotonic() < end, f"waited {deadline_s} s for {subject}"
        time.sleep(0.1)


def run_of(lab: str) -> Path:
    """Returns the newest run directory of a lab."""
    return max((RESULTS / lab).iterdir())


def process_of(lab: str, role: str) -> int:
    data = json.loads(Path(f"/run/vnet/{lab}/lab.json").read_text())
    return next(int(p["pid"]) for p in data["processes"] if p["role"] == role)
