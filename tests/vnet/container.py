"""Turns this process into one of a container, as container runtimes do by default, and starts a command in
it.

    unshare --user --map-root-user --mount --pid --net --ipc --uts --fork --kill-child \\
        python container.py WRITABLE COMMAND...

It has no capabilities, no new privileges, a root file system that is read-only except WRITABLE, a small
noexec /dev/shm and no network; a seccomp filter refuses the calls that the default profiles of Docker and
Podman refuse.
"""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
from pathlib import Path

MOUNTS = """
mount --make-rprivate /
mount --rbind "$1" "$1"
mount -o remount,bind,ro,nosuid,nodev /
mount -t proc -o nosuid,nodev,noexec proc /proc
mount -t tmpfs -o nosuid,nodev,noexec,size=64m,mode=1777 shm /dev/shm
"""
# System calls of x86-64 on the profile's list that this kernel has. The profile allows ptrace since Linux
# 4.8.
REFUSED = {
    "acct": 163, "add_key": 248, "bpf": 321, "clock_adjtime": 305, "clock_settime": 227, "delete_module": 176,
    "finit_module": 313, "fsconfig": 431, "fsmount": 432, "fsopen": 430, "get_mempolicy": 239,
    "init_module": 175, "io_uring_setup": 425, "ioperm": 173, "iopl": 172, "kexec_file_load": 320,
    "kexec_load": 246, "keyctl": 250, "lookup_dcookie": 212, "mbind": 237, "mount": 165, "mount_setattr": 442,
    "move_mount": 429, "move_pages": 279, "open_by_handle_at": 304, "open_tree": 428, "perf_event_open": 298,
    "personality": 135, "pivot_root": 155, "quotactl": 179, "reboot": 169, "request_key": 249,
    "set_mempolicy": 238, "setns": 308, "settimeofday": 164, "swapoff": 168, "swapon": 167, "syslog": 103,
    "umount2": 166, "unshare": 272, "userfaultfd": 323,
}  # fmt: skip
CLONE, CLONE3 = 56, 435
CLONE_NEW = 0x7E020000  # all flags for namespaces
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06  # classic BPF: ld abs, jeq, jset, ret
ALLOW, ERRNO, ENOSYS, EPERM = 0x7FFF0000, 0x00050000, 38, 1
ARGUMENT = 16  # offset of args[0] in struct seccomp_data


def refuse() -> None:
    """Refuses the calls of the profile in this process and all its children."""
    numbers = sorted(REFUSED.values())
    program = [(LOAD, 0, 0, 0)]
    program += [(EQUAL, len(numbers) - at + 5, 0, number) for at, number in enumerate(numbers)]
    program += [
        (EQUAL, 3, 0, CLONE3),
        (EQUAL, 0, 3, CLONE),
        (LOAD, 0, 0, ARGUMENT),
        (ANY_BIT, 2, 1, CLONE_NEW),
        # ENOSYS, at which libc uses clone instead, whose flags a filter can see
        (RETURN, 0, 0, ERRNO | ENOSYS),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, ERRNO | EPERM),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(filters), 0, 0),
    ):
        if libc.prctl(arguments[0], *map(ctypes.c_ulong, arguments[1:])) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def main() -> None:
    writable, command = Path(sys.argv[1]), sys.argv[2:]
    subprocess.run(["sh", "-euc", MOUNTS, "sh", str(writable)], check=True)
    os.chdir(writable)
    os.environ |= {"HOME": str(writable), "TMPDIR": str(writable), "VNET_STATE_DIR": str(writable / "state")}
    refuse()
    bare = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
    os.execvp(bare[0], [*bare, *command])


if __name__ == "__main__":
    main()
