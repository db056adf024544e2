"""First process inside a lab in virtual time: mounts the file systems that the root needs and runs the lab
process.

The kernel has unpacked the closed root and starts this (kernel.py: `rdinit`); standard library only. The
guest receives no input during the run. It writes the lab's lines (raw/guest.jsonl), its errors (raw/lab.log)
and its exit status (raw/status) to the run directory, the only directory of the machine that it sees.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import socket
import struct
import subprocess
import sys
from pathlib import Path

POWER_OFF = 0x4321FEDC  # LINUX_REBOOT_CMD_POWER_OFF, include/uapi/linux/reboot.h
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
OPEN_FILES = 65536
RUN = Path("/vnet/run")
# The working directory of the kernel's own process, which hostfs finds in the machine's /proc. The dot after
# `run` makes the machine follow the link to the run directory.
STAGE = "/proc/self/cwd"
RAW = RUN / "raw"
LINES, ERRORS, STATUS = "guest.jsonl", "lab.log", "status"
BIND = 4096  # MS_BIND, include/uapi/linux/mount.h
CARRIED = ("/run", "/tmp")
MOUNTS = (
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("devpts", "/dev/pts", "mode=620,ptmxmode=666"),
    ("tmpfs", "/dev/shm", "mode=1777"),
    ("tmpfs", "/run", "mode=755"),
    ("tmpfs", "/tmp", "mode=1777"),
    ("cgroup2", "/sys/fs/cgroup", ""),
    ("hostfs", str(RUN), f"{STAGE}/run/."),
)


def mount(kind: str, place: str, options: str) -> None:
    """Mounts a file system of that kind at `place`; raises OSError with the place."""
    libc = ctypes.CDLL(None, use_errno=True)
    Path(place).mkdir(parents=True, exist_ok=True)
    if libc.mount(b"none", os.fsencode(place), kind.encode(), 0, os.fsencode(options)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f"mount {kind} at {place}")


def mount_all() -> None:
    """Mounts `MOUNTS`, and shows in the new /run and /tmp the files of the machine that the topology names
    and that the closed root has there. Raises OSError.
    """
    kept = {place: os.open(place, os.O_PATH) for place in CARRIED if Path(place).is_dir()}
    names = {place: sorted(one.name for one in Path(place).iterdir()) for place in kept}
    for kind, place, options in MOUNTS:
        mount(kind, place, options)
    for place, below in kept.items():
        for name in names[place]:
            _bind(f"/proc/self/fd/{below}/{name}", f"{place}/{name}")
        os.close(below)


def _bind(source: str, place: str) -> None:
    if Path(source).is_dir():
        Path(place).mkdir()
    else:
        Path(place).touch()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(os.fsencode(source), os.fsencode(place), b"", BIND, b"") != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f"mount at {place}")


def set_up(limits: dict[str, int], open_files: int = OPEN_FILES) -> None:
    """Configures the lab's kernel: cgroup controllers, write-back times, loopback, open files, host name.
    limits: values by files below /proc/sys; open_files: most of one process.
    """
    for name, value in limits.items():
        Path("/proc/sys", name).write_text(str(value))
    groups = Path("/sys/fs/cgroup")
    for controller in (groups / "cgroup.controllers").read_text().split():
        (groups / "cgroup.subtree_control").write_text(f"+{controller}")
    # Writes results to the host within a second of lab time, so that progress can be shown, and for a lab
    # that is killed.
    for name in ("dirty_writeback_centisecs", "dirty_expire_centisecs"):
        Path("/proc/sys/vm", name).write_text("100")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))
    socket.sethostname("vnet-lab")


def run(settings: dict[str, object], raw: Path = RAW) -> int:
    """Runs the lab process to its end and reaps all processes that end before it; returns its exit status,
    128 + n for signal n.
    """
    with (raw / LINES).open("wb") as lines, (raw / ERRORS).open("wb") as errors:
        child = subprocess.Popen(
            settings["argv"],  # type: ignore[call-overload]
            env=settings["env"],
            stdin=subprocess.DEVNULL,
            stdout=lines,
            stderr=errors,
        )
        while True:
            pid, status = os.wait()
            if pid == child.pid:
                child.returncode = code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code


def main() -> None:
    """Mounts, configures and runs what the settings file (argument 1) states, writes the exit status, and
    powers the kernel off.
    """
    settings = json.loads(Path(sys.argv[1]).read_text())
    try:
        mount_all()
        set_up(settings["limits"], settings.get("open_files", OPEN_FILES))
    except OSError as error:
        # The owner looks for this line on the console; then the kernel stops, because process 1 ends.
        sys.exit(f"vnet-boot: failed: {error.filename or ''}: {error.strerror or error}")
    status = run(settings)
    os.sync()  # writes results to the host before the status announces them
    (RAW / STATUS).write_text(f"{status}\n")
    os.sync()
    ctypes.CDLL(None).reboot(POWER_OFF)


if __name__ == "__main__":
    main()
