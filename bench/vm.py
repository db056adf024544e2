"""Measures virtual machines: one from its creation to its agent, 40 up and down, the memory of each, and the
same guests by hand.

By hand: the same kernel, initrd, command line and accelerator under plain QEMU, as many machines start at
once as in vNET, and each is measured until its agent answers a hello; libvirt, networks and configuration are
missing. The CPU time until the last answer, divided by the cores, is the least time of a bring-up (an idle
machine adds half a percent of a core). VNET_BENCH_VMS changes the 40.
"""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from commands import VNET, left_out, reads, timed

from orchestrator.images import Image, ImageError, locate
from orchestrator.lab.vm import accel
from orchestrator.lab.vm.domain import EMULATOR, QBOOT, TB_CACHE_MIB

BENCH = Path(__file__).parent
MANY = int(os.environ.get("VNET_BENCH_VMS", "40"))
WIDTH = 2 * (os.cpu_count() or 1)
PATIENCE_S = 300.0
IDLE_S = 10.0  # seconds before memory is read: guests give back what they have freed every two seconds


@dataclass(frozen=True)
class Lab:
    """The seconds of the whole `vnet up` and `vnet down`, the longest time from creation to agent, and the
    mean PSS of a machine in bytes.
    """

    up: float
    down: float
    agent: float
    pss: float


def vnet(count: int, image: str, out: Path) -> Lab:
    lab = f"benchvm{os.getpid()}"
    up = timed(
        str(VNET), "up", str(BENCH / "vm.yaml"), "-p", f"nodes={count}", "-p", f"image={image}",
        "--lab", lab, "--kernel", "host", "--results", str(out / str(count)),
    )  # fmt: skip
    try:
        time.sleep(IDLE_S)
        nodes = json.loads(reads(str(VNET), "inspect", lab, "--json"))["nodes"]
        pss = [pss_bytes(int(node["pid"])) for node in nodes.values()]
        (progress,) = (out / str(count)).glob("**/raw/progress.jsonl")
        agent = max(boot_seconds(progress).values())
    finally:
        down = timed(str(VNET), "down", lab)
    return Lab(up, down, agent, sum(pss) / len(pss))


def boot_seconds(progress: Path) -> dict[str, float]:
    """Returns, for each machine, the seconds from its creation to its agent's answer."""
    told = [e for e in map(json.loads, progress.read_text().splitlines()) if e["event"] == "node-state"]
    at = {
        state: {e["node"]: e["t_ns"] for e in told if e["state"] == state}
        for state in ("booting", "agent up")
    }
    return {node: (up - at["booting"][node]) / 1e9 for node, up in at["agent up"].items()}


def pss_bytes(pid: int) -> int:
    found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    assert found, f"/proc/{pid}/smaps_rollup has no Pss"
    return int(found[1]) * 1024


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def by_hand(count: int, image: Image) -> tuple[float, float]:
    """Returns the seconds until all agents have answered, and the CPU seconds that their machines used until
    then.
    """
    guests: list[subprocess.Popen[bytes]] = []
    accelerator = "kvm" if accel.verdict(image).kvm else f"tcg,tb-size={TB_CACHE_MIB}"
    with tempfile.TemporaryDirectory() as directory:

        def boot(number: int) -> None:
            path, null = f"{directory}/{number}", subprocess.DEVNULL
            guest = subprocess.Popen(command(image, accelerator, path), stdin=null, stdout=null)
            guests.append(guest)
            answered(path)

        try:
            start = time.monotonic()
            with ThreadPoolExecutor(WIDTH) as pool:
                list(pool.map(boot, range(count)))
            return time.monotonic() - start, sum(cpu_s(guest.pid) for guest in guests)
        finally:
            for guest in guests:
                guest.kill()
                guest.wait()


def command(image: Image, accelerator: str, path: str) -> list[str]:
    return [
        EMULATOR, "-accel", accelerator, "-machine", "q35", "-bios", str(QBOOT),
        *(["-cpu", "host"] if accelerator == "kvm" else []),
        "-m", str(image.memory_bytes >> 20), "-nodefaults", "-serial", "null", "-display", "none",
        "-no-reboot",
        "-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", image.append,
        "-device", "virtio-serial-pci", "-chardev", f"socket,id=a,path={path},server=on,wait=off",
        "-device", "virtserialport,chardev=a,name=vnet.agent", "-device", "virtio-rng-pci",
        "-chardev", f"socket,id=g,path={path}.ga,server=on,wait=off",
        "-device", "virtserialport,chardev=g,name=org.qemu.guest_agent.0",
        "-device", "virtio-balloon-pci,free-page-reporting=on",
    ]  # fmt: skip


def answered(path: str) -> None:
    """Waits until an agent has answered the request `hello`; AssertionError if QEMU's socket does not appear
    in PATIENCE_S.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while connection.connect_ex(path):  # the socket does not exist yet, or QEMU does not listen
            assert time.monotonic() < deadline, "QEMU's socket"
            time.sleep(0.005)
        connection.sendall(b'{"id": 1, "op": "hello"}\n')
        assert connection.recv(65536), "the agent's answer"


def row(name: str, value: float, unit: str, peer: str, against: float) -> dict[str, object]:
    return {"name": name, "value": value, "unit": unit, "peer": peer, "ratio": value / against}


def main() -> None:
    if os.geteuid() != 0 or not Path(EMULATOR).exists():
        left_out("needs root and QEMU (images/packages.sh vm)")
    try:
        image, tiny = locate("builtin"), locate("builtin-tiny")
    except ImageError as error:
        left_out(str(error))
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with tempfile.TemporaryDirectory() as out:
        one, alone = vnet(1, image.name, Path(out)), vnet(1, tiny.name, Path(out) / "tiny")
        hand, cpu = by_hand(MANY, tiny)
        many = vnet(MANY, tiny.name, Path(out) / "many")
    least = cpu / (os.cpu_count() or 1)
    rows = [
        row(f"1 VM, create to agent ({image.name})", one.agent, "s", "3 s allowed", 3.0),
        row(f"1 VM, create to agent ({tiny.name})", alone.agent, "s", "3 s allowed", 3.0),
        row(f"{MANY} VMs up", many.up, "s", f"boot CPU over cores, {least:.1f} s", least),
        row(f"{MANY} VMs up", many.up, "s", f"by hand with QEMU, {hand:.1f} s", hand),
        row(f"{MANY} VMs down", many.down, "s", "5 s allowed", 5.0),
        row(f"PSS per VM of {MANY}", many.pss / 1e6, "MB", "100 MB allowed", 100.0),
        row("PSS of 1 VM alone", alone.pss / 1e6, "MB", "100 MB allowed", 100.0),
    ]
    print(json.dumps(rows))


main()
