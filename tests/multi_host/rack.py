"""Makes hosts for tests inside one kernel: namespaces with control groups, an address and an sshd each.

They share the kernel's clock, so the true offset between any two is zero, and an estimate can be checked.
Killing its process 1 ends a host like a power failure; the network between the hosts is a bridge with netem.
machines.py makes hosts with kernels of their own for the same rack.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "remote"))

from far_machine import CLIENT, key  # noqa: E402

from orchestrator.lab.cgroup import remove_tree  # noqa: E402

BRIDGE, HOME, HOME6 = "under", "192.0.2.1", "2001:db8::1"
CGROUP = Path("/sys/fs/cgroup")
CONFIG = """\
Port 22
{listens}
HostKey {place}/host
AuthorizedKeysFile {place}/authorized
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 100
LogLevel ERROR
SetEnv HOME={place}/home XDG_CACHE_HOME={place}/cache XDG_STATE_HOME={place}/kept
"""


def trees() -> list[Path]:
    """Returns the roots of the control groups: one, or one for each controller."""
    if (CGROUP / "cgroup.controllers").exists():
        return [CGROUP]
    return [entry for entry in CGROUP.iterdir() if (entry / "cgroup.procs").exists()]


def ip(text: str, *more: str) -> None:
    subprocess.run(["ip", *more, "-batch", "-"], input=text, text=True, check=True)


class Host:
    """A host in namespaces; the directory `place` holds the files that survive a power failure of the
    host.
    """

    def __init__(self, rack: Path, number: int) -> None:
        self.name, self.number = f"h{number}", number
        self.address, self.address6 = f"192.0.2.{10 + number}", f"2001:db8::{10 + number}"
        self.mac = f"02:00:c0:00:02:{10 + number:02x}"  # a machine keeps its card's address when it is off
        self.place = rack / self.name
        self.place.mkdir()
        (self.place / "home").mkdir()
        key(self.place / "host")
        (self.place / "authorized").write_text((rack / "mine.pub").read_text())
        listens = "\n".join(f"ListenAddress {address}" for address in self.listens_on)
        text = CONFIG.format(listens=listens, place=self.place)
        (self.place / "sshd_config").write_text(text)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def listens_on(self) -> list[str]:
        """The addresses of the host's ssh server."""
        return [self.address, self.address6]

    @property
    def url(self) -> str:
        return f"ssh://root@{self.address}"

    @property
    def url6(self) -> str:
        return f"ssh://root@[{self.address6}]"

    @classmethod
    def prepare(cls) -> None:
        """Prepares, once, what this kind of host needs besides the bridge."""

    @classmethod
    def clear(cls) -> None:
        """Removes the things that `prepare` made."""

    def start(self, delay_ms: float) -> None:
        """Powers the host on, and returns when its ssh server listens. `delay_ms`: the delay of its interface
        in each direction.
        """
        groups = [tree / self.name for tree in trees()]
        for group in groups:
            group.mkdir(exist_ok=True)
        init = [sys.executable, "-S", str(HERE / "host_init.py"), self.name, str(self.place)]
        init += [f"{self.address}/24", f"{self.address6}/64"]
        own = ["--net", "--mount", "--uts", "--cgroup", "--pid", "--fork", "--kill-child", "--mount-proc"]
        enter = "".join(f"echo $$ > {group}/cgroup.procs; " for group in groups)
        script = f"{enter} exec unshare {' '.join(own)} {' '.join(init)}"
        with (self.place / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", script], stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        inside = self._until("its process 1", lambda: self._child())
        for tree in trees():
            (tree / "rack" / "cgroup.procs").write_text(str(self.process.pid))
        port = f"v{self.number}"
        made = f"link add {port} type veth peer name eth0 address {self.mac} netns {inside}\n"
        ip(f"{made}link set {port} master {BRIDGE} up\n")
        if delay_ms:
            for words in (
                ["tc", "qdisc", "add", "dev", port],
                self.inside("tc", "qdisc", "add", "dev", "eth0"),
            ):
                subprocess.run(
                    [*words, "root", "netem", "delay", f"{delay_ms}ms", "limit", "10000"], check=True
                )
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        self._until("its ssh server", self._listens)

    def clock_off_ns(self) -> tuple[int, int]:
        """Returns bounds (ns) of the host's clock minus ours, without a message over the network."""
        return 0, 0

    def inside(self, *words: str) -> list[str]:
        """Returns the command that runs `words` in the host's namespaces, without its ssh server."""
        return ["nsenter", "-t", str(self._child()), "-n", "-m", "-p", "-u", "-C", *words]

    def kill(self) -> None:
        """Powers the host off: no process ends in order, and no connection is closed."""
        assert self.process is not None
        self.cut(there=False)
        if (inside := self._child()) is not None:
            os.kill(inside, signal.SIGKILL)
        self.process.wait()
        for tree in trees():  # at a power failure, a machine's control groups vanish
            remove_tree(tree / self.name)
        subprocess.run(["ip", "link", "del", f"v{self.number}"], check=False, stderr=subprocess.DEVNULL)
        self.process = None

    def cut(self, there: bool) -> None:
        """Disconnects the host from the bridge, or connects it again (`there`)."""
        ip(f"link set v{self.number} {'up' if there else 'down'}\n")

    @contextmanager
    def instead(self, program: str, script: str) -> Iterator[None]:
        """Replaces a program on the host by a script for the duration of the context; `$REAL` in the script
        is the program.
        """
        real, fake = self.place / f"{Path(program).name}.real", self.place / f"{Path(program).name}.fake"
        shutil.copy(program, real)
        fake.write_text(f"#!/bin/sh\nREAL={real}\n{script}\n")
        fake.chmod(0o755)
        subprocess.run(self.inside("mount", "--bind", str(fake), program), check=True)
        try:
            yield
        finally:
            subprocess.run(self.inside("umount", program), check=True)

    def left(self) -> list[str]:
        """Returns a line for each object of a lab that is left on the host: namespaces, groups, directories,
        VXLANs, processes.
        """
        script = (
            "ls /run/netns; ls -d /sys/fs/cgroup/vnet/* /sys/fs/cgroup/*/vnet/* 2>/dev/null; "
            "ip -o link show type vxlan; "
            f"find {self.place}/kept/vnet/far /run/vnet -mindepth 1 -maxdepth 1 2>/dev/null; "
            "pgrep -fa '[v]net-agent|[s]pread.part|[t]cpdump|[q]emu-system'"
        )
        said = subprocess.run(self.inside("sh", "-c", script), capture_output=True, text=True, check=False)
        return said.stdout.split("\n")[:-1]

    def _child(self) -> int | None:
        assert self.process is not None
        for entry in Path("/proc").iterdir():  # the lab kernel has no list of a process's children
            try:
                text = (entry / "stat").read_text() if entry.name.isdigit() else ""
            except (FileNotFoundError, ProcessLookupError):
                continue
            if text and int(text.rpartition(")")[2].split()[1]) == self.process.pid:
                return int(entry.name)
        return None

    def _listens(self) -> bool:
        assert self.process is not None and self.process.poll() is None, (self.place / "log").read_text()
        said = subprocess.run(self.inside("ss", "-Hltn", "sport = 22"), capture_output=True, check=False)
        return bool(said.stdout.strip())

    def _until(self, subject: str, probe: Any) -> Any:
        deadline = time.monotonic() + 300
        while not (found := probe()):
            assert time.monotonic() < deadline, f"{self.name}: waited for {subject}"
            time.sleep(0.02)
        return found


class Rack:
    """Hosts on one bridge; this machine is the home of their labs."""

    def __init__(self, place: Path, count: int, delay_ms: float = 0, kind: type[Host] = Host) -> None:
        self.place, self.delay_ms, self.kind = place, delay_ms, kind
        place.mkdir()
        key(place / "mine")
        self.hosts = [kind(place, number) for number in range(1, count + 1)]
        known = (f"{','.join(h.listens_on)} {(h.place / 'host.pub').read_text()}" for h in self.hosts)
        (place / "known").write_text("".join(known))
        (place / "config").write_text(CLIENT.format(place=place, key="mine", known="known"))
        for tree in trees():
            (tree / "rack").mkdir(exist_ok=True)
        kind.prepare()
        ip(f"link add {BRIDGE} type bridge\naddress add {HOME}/24 dev {BRIDGE}\nlink set {BRIDGE} up\n")
        ip(f"address add {HOME6}/64 dev {BRIDGE} nodad\n")
        for host in self.hosts:
            host.start(delay_ms)

    @property
    def env(self) -> dict[str, str]:
        return {"VNET_SSH": f"ssh -F {self.place}/config"}

    def close(self) -> None:
        for host in self.hosts:
            if host.process is not None:
                host.kill()
        self.kind.clear()
        ip(f"link del {BRIDGE}\n")
