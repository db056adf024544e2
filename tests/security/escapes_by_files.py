"""Defines attempts to escape from a node by files: writing into the machine's, reading its secrets.

A function of `ESCAPES` returns a true value if it succeeded; a false one, or OSError, if not.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Callable

from inside import ESCAPES, ROOTS_HOME, TOLD, call, escape, text, write

# --- the machine's files


def _writes(where: str) -> Callable[[], object]:
    return lambda: write(f"{where}/vnet-was-here")


for name, where in {"etc": "/etc", "root": ROOTS_HOME, "home": "/home", "usr": "/usr/bin", "var": "/var/lib",
                    "cron": "/etc/cron.d", "boot": "/boot", "slash": "/", "opt": "/opt", "dev": "/dev"}.items():  # fmt: skip
    ESCAPES[f"write_into_{name}"] = _writes(where)


@escape
def machines_name_servers() -> object:
    return [
        line for line in text("/etc/resolv.conf").splitlines() if line.split() != ["nameserver", "127.0.0.1"]
    ]


@escape
def machines_hosts() -> object:
    lines = text("/etc/hosts").splitlines()
    return [line for line in lines if not line.startswith(("10.77.0.", "127.0.0.1 localhost", "::1 "))]


@escape
def change_names_for_others() -> object:
    return write("/etc/hosts")


@escape
def change_passwd() -> object:
    with open("/etc/passwd", "a") as file:
        return file.write("\n")


@escape
def chmod_a_program() -> object:
    return os.chmod("/usr/bin/env", 0o4755) or "changed"


@escape
def remove_a_program() -> object:
    return os.unlink("/usr/bin/env") or "removed"


@escape
def remount_writable() -> object:
    return call("mount", b"none", b"/", None, 0x20 | 0x1000, None) and write("/etc/vnet-was-here")


@escape
def unmount_a_cover() -> object:
    call("umount2", b"/root", 2)
    return os.listdir(ROOTS_HOME)


@escape
def mount_a_tmpfs() -> object:
    return call("mount", b"none", b"/mnt", b"tmpfs", 0, None)


@escape
def mount_a_disk() -> object:
    numbers = [
        line.split()[2] for line in text("/proc/self/mountinfo").splitlines() if line.split()[4] == "/"
    ]
    major, minor = map(int, numbers[0].split(":"))
    os.mknod("/tmp/disk", 0o600 | stat.S_IFBLK, os.makedev(major, minor))
    with open("/tmp/disk", "rb") as disk:
        return disk.read(1)


@escape
def make_kernel_memory_device() -> object:
    os.mknod("/tmp/mem", 0o600 | stat.S_IFCHR, os.makedev(1, 1))
    with open("/tmp/mem", "rb") as memory:
        return memory.read(1)


@escape
def new_mount_api() -> object:
    return call("fsopen", b"tmpfs", 0)


@escape
def pivot_root() -> object:
    return call("pivot_root", b"/tmp", b"/tmp")


@escape
def chroot_and_climb() -> object:
    before = os.open("/", os.O_RDONLY)
    os.mkdir("/tmp/jail")
    os.chroot("/tmp/jail")
    os.fchdir(before)
    for _ in range(20):
        os.chdir("..")
    os.chroot(".")
    return os.path.exists(TOLD["secret"]) or write("/etc/vnet-was-here")


@escape
def open_by_handle() -> object:
    handle = struct.pack("IiQI", 12, 1, 2, 0)  # inode 2: the root of most file systems
    return call("open_by_handle_at", os.open("/", os.O_RDONLY), handle, 0)


# --- secrets


@escape
def read_shadow() -> object:
    return text("/etc/shadow")


@escape
def read_gshadow() -> object:
    return text("/etc/gshadow")


@escape
def read_ssh_keys() -> object:
    directory = "/etc/ssh"
    keys = [n for n in os.listdir(directory) if n.endswith("_key")] if os.path.isdir(directory) else []
    return "".join(text(f"{directory}/{key}") for key in keys)


@escape
def list_tls_keys() -> object:
    return os.path.isdir("/etc/ssl/private") and os.listdir("/etc/ssl/private")


@escape
def list_root() -> object:
    return os.listdir(ROOTS_HOME)


@escape
def list_homes() -> object:
    return os.listdir("/home")


@escape
def read_a_planted_secret() -> object:
    return text(TOLD["secret"])


@escape
def list_labs() -> object:
    found = os.listdir(TOLD["state_root"])
    return [name for name in found if name != TOLD["lab"]] or os.path.exists(TOLD["control"])


@escape
def connect_to_the_control_socket() -> object:
    return socket.socket(socket.AF_UNIX).connect(TOLD["control"]) or "connected"


@escape
def connect_to_the_launcher() -> object:
    path = TOLD["control"].replace("control.sock", "agent.sock")
    return socket.socket(socket.AF_UNIX).connect(path) or "connected"


@escape
def read_this_runs_results() -> object:
    return os.listdir(TOLD["run_dir"])


@escape
def see_the_machines_run() -> object:
    return set(os.listdir("/run")) - {"lock", "vnet", "x"}


@escape
def see_the_machines_tmp() -> object:
    return os.path.exists(TOLD["in_tmp"])
