"""Starts labs of machines for tests, and a libvirt daemon that can run them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab_running import Control, Running, until
from vm_talking import SERVING

from contract.plan import Plan

Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    made: list[Running] = []
    top = Path(tempfile.mkdtemp(prefix="vt"))  # a short path, because QEMU's sockets are deep below it

    def run(plan: Plan, *options: str, state_root: Path | None = None) -> Running:
        directory = top / str(len(made))
        directory.mkdir()
        made.append(Running(plan, directory, *options, driver="vm", state_root=state_root))
        return made[-1]

    yield run
    for running in made:
        running.close()
    shutil.rmtree(top)


def up(running: Running) -> Control:
    running.await_event("phase", timeout=280, text=SERVING)
    return Control(running)


def qemu_pid(control: Control, name: str) -> int:
    return int(control.call("inspect")["nodes"][name]["pid"])


DAEMON = """
for d in /run/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt /etc/libvirt; do
    mkdir -p $d; mount -t tmpfs none $d
done
mkdir -p /etc/libvirt/qemu
cat > /etc/libvirt/qemu.conf <<END
stdio_handler = "file"
user = "root"
group = "root"
cgroup_controllers = []
END
cat > /etc/libvirt/libvirtd.conf <<END
unix_sock_dir = "$0"
auth_unix_rw = "none"
auth_unix_ro = "none"
END
exec libvirtd -p $0/pid -f /etc/libvirt/libvirtd.conf
"""


@dataclass(frozen=True)
class Daemon:
    """A libvirt daemon; `states` is a directory whose mounts the daemon sees, as a server's daemon sees those
    of /run.
    """

    uri: str
    states: Path
    process: subprocess.Popen[bytes]


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """Yields a libvirtd with directories of its own; its settings let it run machines as root."""
    place = Path(tempfile.mkdtemp(prefix="vd"))
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
    subprocess.run(["mount", "--make-shared", place], check=True)
    place.chmod(0o711)
    process = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "slave", "sh", "-c", DAEMON, str(place)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(
            30, "libvirtd's socket", lambda: (place / "libvirt-sock").exists() or process.poll() is not None
        )
        (place / "s").mkdir(mode=0o755)
        yield Daemon(f"qemu+unix:///system?socket={place}/libvirt-sock", place / "s", process)
    finally:
        process.terminate()
        process.wait()
        subprocess.run(["umount", place], check=True)
        place.rmdir()
