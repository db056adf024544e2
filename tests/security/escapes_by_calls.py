"""Defines attempts to escape from a node by single system calls, and by ioctl on files of the machine.

A function of `ESCAPES` returns a true value if it succeeded; a false one, or OSError, if not.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import socket
import struct
from collections.abc import Callable

from inside import ESCAPES, escape, libc, text, write

libc.syscall.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p
MACHINES = "/etc/debian_version" if os.path.exists("/etc/debian_version") else "/etc/os-release"
F_SETLEASE = 1024


def by_number(number: int, *arguments: object) -> int:
    """Makes a system call of x86-64; returns its result, or raises OSError if the kernel refuses it."""
    plain = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    if (got := int(libc.syscall(ctypes.c_long(number), *plain))) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got


def _opened(path: str, function: Callable[[int], object]) -> object:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return function(descriptor)
    finally:
        os.close(descriptor)


# --- files of the machine, open for reading


@escape
def lease_on_a_file_of_the_machine() -> object:
    """A lease on a file delays everybody who opens the file for writing by 45 s."""
    return _opened(MACHINES, lambda fd: fcntl.fcntl(fd, F_SETLEASE, fcntl.F_RDLCK) or "leased")


def _ioctl(number: int, argument: bytes) -> Callable[[], object]:
    return lambda: _opened(MACHINES, lambda fd: fcntl.ioctl(fd, number, argument) and "done")


# include/uapi/linux/fs.h, fs/ext4/ext4.h
for key, values in {
    "trim": (0xC0185879, struct.pack("QQQ", 0, 1 << 60, 0)), "set_a_project": (0x401C5820, bytes(28)),
    "make_immutable": (0x40086602, struct.pack("l", 0x10)), "change_the_version": (0x40087602, struct.pack("l", 7)),
}.items():  # fmt: skip
    ESCAPES[f"file_system_{key}"] = _ioctl(*values)


@escape
def watch_a_whole_file_system() -> object:
    group = by_number(300, 0x200, 0)  # fanotify_init(FAN_REPORT_FID)
    return by_number(301, group, 0x101, 0x20, -100, b"/etc") or "marked"  # FAN_MARK_FILESYSTEM


@escape
def answer_for_others_opens() -> object:
    return by_number(300, 0x4, 0)  # FAN_CLASS_CONTENT


@escape
def physical_addresses() -> object:
    page = ctypes.create_string_buffer(8192)
    page[0] = b"x"
    with open("/proc/self/pagemap", "rb") as file:
        file.seek(ctypes.addressof(page) // 4096 * 8)
        return struct.unpack("Q", file.read(8))[0] & ((1 << 55) - 1)


# --- the following use the machine's kernel


@escape
def copy_a_mount() -> object:
    return by_number(428, -100, b"/", 1)  # open_tree(OPEN_TREE_CLONE)


@escape
def new_time_namespace() -> object:
    return by_number(272, 0x80) or "unshared"


@escape
def namespaces_by_clone() -> object:
    return by_number(56, 0x10000000 | 17, 0, 0, 0, 0) or os._exit(0)


@escape
def change_the_time_namespace() -> object:
    return write("/proc/self/timens_offsets", "monotonic 1 0")


@escape
def map_another_user() -> object:
    return write("/proc/self/uid_map", "0 0 1")


@escape
def choose_the_next_process_number() -> object:
    return write("/proc/sys/kernel/ns_last_pid", "5")


@escape
def be_spared_when_memory_ends() -> object:
    return write("/proc/self/oom_score_adj", "-1000")


@escape
def start_the_machines_crash_handler() -> object:
    """The kernel starts the program of core_pattern even with a limit of 0 on core files; with 1 it
    does not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (4096, resource.RLIM_INFINITY))
        return "raised"
    return (soft, hard) != (1, 1)


@escape
def take_a_huge_page() -> object:
    taken = libc.mmap(None, ctypes.c_size_t(2 << 20), 3, 0x22 | 0x40000, -1, 0)
    return taken not in (None, (1 << 64) - 1)


@escape
def take_huge_pages_by_a_file() -> object:
    return by_number(319, b"x", 4)  # memfd_create(MFD_HUGETLB)


@escape
def take_huge_pages_of_shared_memory() -> object:
    return by_number(29, 0, 2 << 20, 0o4000 | 0o1600) + 1  # shmget(SHM_HUGETLB)


@escape
def join_a_session_of_keys() -> object:
    return by_number(250, 1, 0)


@escape
def wake_the_machine() -> object:
    return by_number(283, 9, 0)  # timerfd_create(CLOCK_BOOTTIME_ALARM)


@escape
def have_a_deadline() -> object:
    return by_number(314, 0, struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10**6, 10**7, 10**7), 0) or "set"


@escape
def have_the_disk_first() -> object:
    return by_number(251, 1, 0, 1 << 13) or "set"  # ioprio_set: real time


@escape
def be_nicer_than_allowed() -> object:
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    return os.getpriority(os.PRIO_PROCESS, 0) < 0


@escape
def empty_the_entropy() -> object:
    return _opened("/dev/urandom", lambda fd: fcntl.ioctl(fd, 0x5206) or "cleared")


@escape
def add_entropy() -> object:
    return _opened(
        "/dev/urandom", lambda fd: fcntl.ioctl(fd, 0x40085203, struct.pack("ii8s", 64, 8, b"a" * 8))
    )


# --- the following use the agent and networks


@escape
def descriptors_of_the_agent() -> object:
    return by_number(438, by_number(434, 1, 0), 0, 0)  # pidfd_getfd


@escape
def namespaces_of_the_agent() -> object:
    return by_number(308, by_number(434, 1, 0), 0x20000000) or "entered"


@escape
def compare_with_the_agent() -> object:
    return by_number(312, 1, os.getpid(), 0, 0, 0) + 1  # kcmp


@escape
def read_the_agents_map() -> object:
    return text("/proc/1/maps")


@escape
def talk_to_the_audit_system() -> object:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9) as audit:
        audit.settimeout(2)
        audit.send(struct.pack("IHHII", 16, 1000, 5, 1, 0))
        answer = audit.recv(4096)
    return struct.unpack("H", answer[4:6])[0] != 2 or struct.unpack("i", answer[16:20])[0] == 0


@escape
def events_of_devices_of_the_machine() -> object:
    """Listens for an event of a device of the machine; the node's own network may send itself one."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15) as events:
        events.bind((0, 1))
        events.settimeout(1)
        with contextlib.suppress(TimeoutError):
            return events.recv(4096)
    return False


@escape
def larger_buffers_than_allowed() -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.setsockopt(socket.SOL_SOCKET, 33, 1 << 29)  # SO_RCVBUFFORCE
        return one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) > 1 << 28


@escape
def families_of_other_machines() -> object:
    """Tries the address families AF_KEY, AF_ALG, AF_TIPC, AF_VSOCK, AF_XDP, AF_BLUETOOTH, AF_RDS, AF_NFC and
    AF_SMC.
    """
    found = []
    for family, kind in ((15, 3), (38, 5), (30, 2), (40, 1), (44, 3), (31, 5), (21, 5), (39, 1), (43, 1)):
        with contextlib.suppress(OSError):
            found.append(socket.socket(family, kind, 0))
    return found
