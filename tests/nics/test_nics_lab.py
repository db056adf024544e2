"""Tests real interfaces in labs: the ends of a veth pair stand for cabled NIC ports, in a namespace that
represents the machine.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.lab import cleanup
from orchestrator.nics import leases

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "target" / "release" / "vnet-agent"
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not AGENT.exists(), reason="needs root and target/release/vnet-agent (make setup)"
)
LAB = f"nictest-{os.getpid()}"
FILE = """
name: {lab}
segments: {{lan: {{subnet: 10.7.0.0/24}}}}
nodes:
  far: {{segment: lan, software: {{first: {{command: "{command}", ready: {{log: up, within: 5 s}}}}}}}}
  near: {{segment: lan}}
links: {{cable: {{between: [far, lan], nics: {{a: {a}, b: {b}}}}}}}
run: {{hold: 1 s}}
"""


@dataclass
class Machine:
    """A network namespace with two cabled ports, in which the tests run commands."""

    netns: str
    directory: Path
    a: str = "vtnic-a"
    b: str = "vtnic-b"

    def ip(self, *arguments: str) -> str:
        command = ["ip", "-n", self.netns, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def file(self, lab: str = LAB, command: str = "echo up; exec sleep 60", a: str = "", b: str = "") -> str:
        path = self.directory / f"{lab}.yaml"
        path.write_text(FILE.format(lab=lab, command=command, a=a or self.a, b=b or self.b))
        return str(path)

    def vnet(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        inside = ["nsenter", f"--net=/run/netns/{self.netns}", sys.executable, "-m", "orchestrator.cli.main"]
        where = ["--kernel", "host", "--results", str(self.directory / "results")] * (
            arguments[0] in ("run", "up")
        )
        done = subprocess.run(
            [*inside, *arguments, *where], cwd=ROOT, env={**os.environ, "VNET_STATE_DIR": str(self.state)},
            capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
        print(done.stdout, done.stderr)
        return done

    @property
    def state(self) -> Path:
        return self.directory / "state"

    def stands(self) -> list[object]:
        """Returns the state of ports, routes and leases, which must be the same before and after a lab."""
        found: list[object] = []
        for name in (self.a, self.b):
            (entry,) = json.loads(self.ip("-j", "-d", "addr", "show", "dev", name))
            addresses = sorted(a["local"] for a in entry["addr_info"] if a["scope"] == "global")
            found.append((entry["ifname"], entry["address"], entry["mtu"], "UP" in entry["flags"], addresses))
            found += [self.offloads(name), entry["gso_max_segs"]]
        return [*found, self.ip("route"), sorted(p.name for p in (self.state / ".leases").glob("*"))]

    def offloads(self, name: str) -> str:
        probe = f"from orchestrator.nics import offloads; print(offloads.read({name!r}))"
        inside = ["nsenter", f"--net=/run/netns/{self.netns}", sys.executable, "-c", probe]
        return subprocess.run(inside, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(f"vtmachine-{os.getpid()}", tmp_path)
    subprocess.run(["ip", "netns", "add", made.netns], check=True)
    try:
        made.ip("link", "add", made.a, "mtu", "1400", "type", "veth", "peer", "name", made.b)
        made.ip("addr", "add", "192.0.2.1/24", "dev", made.a)
        made.ip("link", "set", "dev", made.a, "up")
        made.ip("route", "add", "198.51.100.0/24", "via", "192.0.2.9", "dev", made.a)
        before = made.stands()
        yield made
        assert cleanup.leftovers(LAB, made.state) == []
        assert made.stands() == before
    finally:
        cleanup.destroy(LAB, made.state)
        subprocess.run(["ip", "netns", "del", made.netns], check=True)


def lab_process(machine: Machine, role: str) -> int:
    data = json.loads((machine.state / LAB / "lab.json").read_text())
    return next(int(p["pid"]) for p in data["processes"] if p["role"] == role)


def test_a_run_over_the_cable_and_back(machine: Machine) -> None:
    assert machine.vnet("run", machine.file(), "--raw").returncode == 0
    run_dir = next((machine.directory / "results" / LAB).iterdir())
    proof = json.loads((run_dir / "proof.json").read_text())
    assert [(p["link"], p["verdict"]) for p in proof] == [("cable", "holds")] * 2


def test_a_lab_that_serves_holds_its_ports(machine: Machine) -> None:
    assert machine.vnet("up", machine.file()).returncode == 0
    there = {lease.place: lease for lease in leases.of_lab(machine.state, LAB)}
    assert set(there) == {"nodes.far.eth0", "nodes.far.eth0.cable"}
    assert machine.a not in machine.ip("-br", "link")
    second = machine.vnet("up", machine.file("nicother"))
    assert second.returncode == 3
    assert f"{machine.a} is leased by lab {LAB}; `vnet down {LAB}`" in second.stderr
    answer = machine.vnet("exec", LAB, "near", "--", "ping", "-c", "2", "-i", "0.2", "10.7.0.1")
    assert answer.returncode == 0
    assert machine.vnet("down", LAB).returncode == 0


def test_of_four_labs_that_want_the_same_ports_at_once_one_wins(machine: Machine) -> None:
    """Shows that one lab gets the ports, and that the errors of the others name it and leave
    nothing behind.
    """
    labs = [LAB, *(f"{LAB}-{n}" for n in range(1, 4))]
    files = [machine.file(lab) for lab in labs]
    with ThreadPoolExecutor(4) as at_once:
        ended = list(at_once.map(lambda file: machine.vnet("up", file), files))
    (winner,) = [lab for lab, done in zip(labs, ended, strict=True) if done.returncode == 0]
    for lab, done in zip(labs, ended, strict=True):
        if lab != winner:
            assert done.returncode in (1, 3) and winner in done.stderr, done.stderr
            assert cleanup.leftovers(lab, machine.state) == []
    answer = machine.vnet("exec", winner, "near", "--", "ping", "-c", "2", "-i", "0.2", "10.7.0.1")
    assert answer.returncode == 0
    assert machine.vnet("down", winner).returncode == 0


def test_a_start_that_fails_gives_them_back(machine: Machine) -> None:
    done = machine.vnet("up", machine.file(command="echo no; exit 3"))
    assert done.returncode == 1
    assert "first" in done.stderr


def test_down_repairs_after_kill_9(machine: Machine) -> None:
    assert machine.vnet("up", machine.file()).returncode == 0
    # The launcher would end only the namespaces, and with them the veth pair.
    for role in ("launcher", "lab"):
        os.kill(lab_process(machine, role), signal.SIGKILL)
    assert machine.vnet("down", LAB).returncode == 0


def test_an_absent_port_is_said_before_anything_is_made(machine: Machine) -> None:
    done = machine.vnet("up", machine.file(a="nosuch0"))
    assert done.returncode == 3
    assert 'nodes.far.eth0: "nosuch0": no such NIC is in this machine' in done.stderr
    assert not (machine.directory / "results").exists()
