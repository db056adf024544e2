"""Runs an untrusted Python program in a sandbox: no network, no other process, files only to read.

The program has namespaces of its own (network, files, processes, and users unless root starts it). It sees
the system's libraries, Python, and the given directories, all read-only, and an empty /tmp. It has no
capability and can gain none, can start threads but no process, and has limits of memory, CPU time and file
size. Only x86-64 and ARM64 have such a sandbox. Usage of this file as a program, in a process of its own:
`sandboxed.py ROOT READ[:READ...] DIRECTORY ARGV...`.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from pathlib import Path

UNAVAILABLE = 77  # exit status if the kernel refuses to make namespaces
MEMORY, CPU_S, OUTPUT = 2 << 30, 30, 64 << 20
# linux/sched.h, linux/mount.h, linux/prctl.h
NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x20000,
    0x4000000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
MS_BIND, MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV, MS_RDONLY, MS_REMOUNT = 4096, 16384, 1 << 18, 2, 4, 1, 32
MOUNT_SETATTR, AT_RECURSIVE, AT_FDCWD = 442, 0x8000, -100
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 24, 38, 22
SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
# For each machine type: the audit architecture (linux/audit.h), and the system calls that make processes:
# clone, (fork, vfork,) clone3. The filter permits clone for threads only.
MACHINES = {"x86_64": (0xC000003E, 56, (57, 58), 435), "aarch64": (0xC00000B7, 220, (), 435)}
# System calls that give a process more than it has, or reach what namespaces do not hold: unshare, setns,
# mount, fsopen, open_tree, ptrace, keyctl, add_key, request_key, bpf, perf_event_open, userfaultfd,
# io_uring_setup; and the call `socket`, whose family is one of FAMILIES (vsock has no namespace).
REFUSED = {
    "x86_64": (272, 308, 165, 430, 428, 101, 250, 248, 249, 321, 298, 323, 425),
    "aarch64": (97, 268, 40, 430, 428, 117, 219, 217, 218, 280, 241, 282, 425),
}
SOCKET = {"x86_64": 41, "aarch64": 198}
FAMILIES = (1, 2, 10, 16)  # sys/socket.h: UNIX, INET, INET6, NETLINK, all of the sandbox's own network
X32 = 0x40000000  # asm/unistd.h: numbers from here on are calls of x86-64's x32 ABI
STEP = 8  # bytes of one instruction of a filter, struct sock_filter
CLONE_THREAD, ALLOW, EPERM, ENOSYS = 0x10000, 0x7FFF0000, 0x50000 | 1, 0x50000 | 38

_libc = ctypes.CDLL(None, use_errno=True)


def _insist(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    given = [text.encode() for text in (source, target, kind)]
    _insist(_libc.mount(*given, ctypes.c_ulong(flags), data.encode()), f"mount {target}")


def _own_namespaces() -> None:
    user, group = os.getuid(), os.getgid()
    flags = NEWNS | NEWUTS | NEWIPC | NEWPID | NEWNET | (0 if user == 0 else NEWUSER)
    _insist(_libc.unshare(flags), "unshare")
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _read_only(place: str) -> None:
    attributes = struct.pack("QQQQ", MS_RDONLY | MS_NOSUID | MS_NODEV, 0, 0, 0)
    call = _libc.syscall(MOUNT_SETATTR, AT_FDCWD, place.encode(), AT_RECURSIVE, attributes, len(attributes))
    if call != 0:  # Linux before 5.12 lacks the call
        _mount("none", place, "none", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def _shown(root: Path, place: str) -> None:
    """Mounts a file or directory in the new root, at its own path, read-only unless it is in DEVICES;
    copies a symbolic link outside /etc as a link. Skips a path that is missing, or already in the new root.
    """
    source, target = Path(place), root / place.lstrip("/")
    if not source.exists() or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink() and not place.startswith("/etc"):
        target.symlink_to(source.readlink())
        return
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.touch()
    _mount(str(source), str(target), "none", MS_BIND | MS_REC)
    if place not in DEVICES:
        _read_only(str(target))


def _root(root: Path, shown: list[str]) -> None:
    _mount("none", "/", "none", MS_REC | MS_PRIVATE)
    _mount("tmpfs", str(root), "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=755")
    for place in (*SYSTEM, *DEVICES, *sorted(shown, key=len)):
        _shown(root, place)
    (root / "tmp").mkdir(exist_ok=True)
    os.chroot(root)
    os.chdir("/")


def _weak() -> None:
    """Drops every capability of the process for good, and sets its limits: address space, CPU time, file
    size, open files, no core dump. Raises OSError.
    """
    for number in range(64):
        _libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    header, data = struct.pack("Ii", 0x20080522, 0), bytes(24)  # _LINUX_CAPABILITY_VERSION_3
    _insist(_libc.capset(header, data), "capset")
    _insist(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    for limit, value in (
        (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, CPU_S), (resource.RLIMIT_FSIZE, OUTPUT),
        (resource.RLIMIT_NOFILE, 256), (resource.RLIMIT_CORE, 0),
    ):  # fmt: skip
        resource.setrlimit(limit, (value, value))


def _alone() -> None:
    """Forbids every system call that makes a process, those of REFUSED, sockets of other families, and all
    calls of another architecture, by a seccomp filter that allows threads. Raises OSError, also on an
    architecture that MACHINES does not list.
    """
    program = _filter(platform.machine())
    text = ctypes.create_string_buffer(program)
    described = struct.pack("HxxxxxxP", len(program) // STEP, ctypes.addressof(text))
    _insist(_libc.prctl(PR_SET_SECCOMP, 2, described, 0, 0), "seccomp")


def _filter(machine: str) -> bytes:
    """Returns the seccomp filter for a machine, as platform.machine() names it; OSError without one."""
    if (known := MACHINES.get(machine)) is None:
        raise OSError(f"a machine of the architecture {machine}: only {' and '.join(MACHINES)} have a filter")
    audit, clone, forks, clone3 = known

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    load, equal, least, some, answer = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF: ld abs, jeq, jge, jset, ret
    program = [step(load, 4), step(equal, audit, 1, 0), step(answer, EPERM), step(load, 0)]
    program += [step(least, X32, 0, 1), step(answer, ENOSYS)]
    for number in (*forks, *REFUSED[machine]):
        program += [step(equal, number, 0, 1), step(answer, EPERM)]
    program += [step(equal, clone3, 0, 1), step(answer, ENOSYS)]
    count = len(FAMILIES)
    program += [step(equal, SOCKET[machine], 0, count + 3), step(load, 16)]
    program += [step(equal, family, count - number, 0) for number, family in enumerate(FAMILIES)]
    program += [step(answer, EPERM), step(answer, ALLOW)]
    program += [step(equal, clone, 0, 3), step(load, 16), step(some, CLONE_THREAD, 1, 0), step(answer, EPERM)]
    program += [step(answer, ALLOW)]
    return b"".join(program)


def main(root: str, shown: str, directory: str, *argv: str) -> int:
    """Runs the program `argv` in the sandbox, with `root` as an empty mount point, `shown` as the readable
    paths with colons between them, and `directory` as its working directory.

    Returns its exit status, or 256 less the signal that ended it. Returns UNAVAILABLE, with the error on
    the standard error, if the sandbox cannot be made or the program cannot be started.
    """
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        _own_namespaces()
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return UNAVAILABLE
    child = os.fork()  # the first process of its namespace; when it ends, all others end
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) & 0xFF
    try:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        _root(Path(root), shown.split(":"))
        os.chdir(directory)
        _weak()
        os.closerange(3, 256)
        _alone()
        os.execve(
            argv[0],
            argv,
            {
                "PATH": "/usr/bin:/bin",
                "HOME": "/tmp",
                "LANG": "C.UTF-8",
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONHASHSEED": "0",
            },  # the order of a set decides which node is first
        )
    except OSError as error:
        sys.stderr.write(f"{error}\n")
    os._exit(UNAVAILABLE)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
