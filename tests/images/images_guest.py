"""Runs a virtual machine of one image under plain QEMU and talks to it over its virtio-serial ports, for
tests.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from orchestrator.images import Image

MAC = "02:00:00:00:00:07"


class Guest:
    """A running guest. It boots when the object is created; `ask` waits for the agent's answer, so the first
    `ask("hello")` takes the boot time.
    """

    def __init__(
        self, image: Image, directory: Path, *, memory_mib: int = 0, seed: Path | None = None
    ) -> None:
        self.directory = directory
        self.console = directory / "console.log"
        memory = memory_mib or image.memory_bytes >> 20
        self.memory_kib = memory << 10
        self.process = subprocess.Popen(
            [
                *_machine(memory),
                *_boot(image, directory, seed),
                *self._ports(),
                "-serial",
                f"file:{self.console}",
            ]
        )
        self.number = 0
        self.agent = self._connect("agent")

    def _ports(self) -> list[str]:
        ports = ["-device", "virtio-serial-pci"]
        for name, device in (("agent", "vnet.agent"), ("ga", "org.qemu.guest_agent.0")):
            ports += ["-chardev", f"socket,id={name},path={self.directory}/{name}.sock,server=on,wait=off"]
            ports += ["-device", f"virtserialport,chardev={name},name={device}"]
        return ports

    def _connect(self, name: str) -> Any:
        deadline = time.monotonic() + 20
        while True:
            stream = socket.socket(socket.AF_UNIX)
            stream.settimeout(300)
            try:
                stream.connect(str(self.directory / f"{name}.sock"))
            except OSError:
                assert self.process.poll() is None, "QEMU has ended"
                assert time.monotonic() < deadline, f"{name}.sock does not appear"
                time.sleep(0.01)
            else:
                return stream.makefile("rw")

    def reconnect(self) -> None:
        self.agent.close()
        self.agent = self._connect("agent")

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        return self._talk(op, fields)[0]

    def do(self, op: str, **fields: Any) -> dict[str, Any]:
        answer = self.ask(op, **fields)
        assert answer["ok"], f"{op}: {answer['error']}"
        return answer

    def _talk(self, op: str, fields: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        self.number += 1
        self.agent.write(json.dumps({"id": self.number, "op": op, **fields}) + "\n")
        self.agent.flush()
        output = b""
        while True:
            text = self.agent.readline()
            assert text, f"the channel has closed; the console ends with:\n{self.last_words()}"
            line = json.loads(text)
            if line.get("id") == self.number and line.get("event") == "output":
                output += base64.b64decode(line["data"])
            elif line.get("id") == self.number and "ok" in line:
                return line, output

    def last_words(self) -> str:
        return self.console.read_text(errors="replace")[-1500:]

    def run(self, *argv: str) -> str:
        """Runs a command on node `a`, which must succeed, and returns its output."""
        answer, output = self._talk("exec", {"node": "a", "argv": list(argv), "env": {}, "tty": None})
        assert answer["ok"] and answer["status"] == 0, f"{argv}: {answer} {output.decode()}"
        return output.decode()

    def node(self) -> dict[str, Any]:
        """Makes the node `a` with one interface, and returns the configuration that the agent read back."""
        spec: dict[str, Any] = {
            "name": "a",
            "netns": None,
            "hostname": "alpha",
            "cgroup_procs": [],
            "ipv6": False,
        }
        self.do("create", core=None, nodes=[spec])
        card = {"name": "lan0", "address": "10.1.0.7", "prefix": 16, "mtu": 1400, "mac": MAC}
        nodes: dict[str, Any] = self.do("configure", nodes=[{"name": "a", "interfaces": [card]}])["nodes"]
        return dict(nodes["a"])

    def guest_agent(self, command: str) -> Any:
        """Returns the answer of qemu-ga; a byte 0xFF is sent first, at which qemu-ga discards earlier
        input.
        """
        with self._connect("ga") as port:
            port.write(json.dumps({"execute": command}) + "\n")
            port.flush()
            return json.loads(port.readline())["return"]

    def resident_share(self) -> float:
        """Returns the share of the guest's memory that is resident on this machine, from QEMU's mapping of
        that size.
        """
        text = Path(f"/proc/{self.process.pid}/smaps").read_text()
        (held,) = re.findall(
            rf"^Size: +{self.memory_kib} kB\n(?:.*\n){{2}}Rss: +(\d+) kB", text, re.MULTILINE
        )
        return int(held) / self.memory_kib

    def close(self) -> None:
        self.agent.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)


def _machine(memory_mib: int) -> list[str]:
    program = shutil.which("qemu-system-x86_64")
    assert program
    plain = "-nodefaults -no-user-config -display none -no-reboot -monitor none"
    chosen = f"-machine q35 -accel tcg,tb-size=16 -cpu max -m {memory_mib}M"
    card = f"-netdev hubport,id=n,hubid=1 -device virtio-net-pci,netdev=n,mac={MAC}"
    balloon = "-device virtio-balloon-pci,free-page-reporting=on"
    return [program, *plain.split(), *chosen.split(), *card.split(), *balloon.split()]


def _boot(image: Image, directory: Path, seed: Path | None) -> list[str]:
    """Returns the QEMU arguments that boot the image: with the image's kernel, or from a user's own disk,
    which has its own.
    """
    words = []
    if image.kernel is not None:
        words = ["-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", image.append]
    if image.disk is None:
        return words
    clone = directory / "disk.qcow2"
    base = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(image.disk), str(clone)]
    subprocess.run(base, check=True)
    words += ["-drive", f"file={clone},if=virtio,format=qcow2"]
    return [*words, "-drive", f"file={seed},if=virtio,format=raw,readonly=on"] if seed else words
