"""Defines attempts to escape from a node through the kernel: processes, namespaces, privileges, settings,
sockets, devices. A function of `ESCAPES` returns a true value if it succeeded; a false one, or OSError, if
not.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import pty
import signal
import socket
import stat
import struct
from collections.abc import Callable

from inside import ESCAPES, ROOTS_HOME, TOLD, call, escape, libc, run, text, write

# --- processes


@escape
def see_other_processes() -> object:
    others = [pid for pid in os.listdir("/proc") if pid.isdigit()]
    return [p for p in others if f"time.sleep(1000)  # {TOLD['marker']}" in text(f"/proc/{p}/cmdline")]


@escape
def signal_a_process_of_the_machine() -> object:
    return os.kill(TOLD["pid"], signal.SIGTERM) or "signalled"


@escape
def end_the_agent() -> object:
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
        os.kill(1, number)
    return not os.path.exists("/proc/1")


@escape
def trace_the_agent() -> object:
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(16, 1, 0, 0) < 0:  # PTRACE_ATTACH
        raise OSError(ctypes.get_errno(), "refused")
    return "traced"


@escape
def read_the_agents_memory() -> object:
    return text("/proc/1/mem") or text("/proc/1/environ")


@escape
def reach_the_agents_files() -> object:
    return os.readlink("/proc/1/fd/4") or text(f"/proc/1/root{TOLD['secret']}")


@escape
def write_to_pid_1s_descriptor() -> object:
    return write("/proc/1/fd/3", '{"event":"error","text":"forged"}\n')


# --- namespaces and privileges


@escape
def new_user_namespace() -> object:
    return call("unshare", 0x10000000)


@escape
def new_mount_namespace() -> object:
    return call("unshare", 0x00020000)


@escape
def new_network_namespace() -> object:
    return run("unshare", "-n", "true")


@escape
def enter_namespaces_of_pid_1() -> object:
    return call("setns", os.open("/proc/1/ns/mnt", os.O_RDONLY), 0)


@escape
def namespaces_by_clone3() -> object:
    arguments = struct.pack("8Q", 0x10000000, 0, 0, 0, int(signal.SIGCHLD), 0, 0, 0)
    libc.syscall.restype = ctypes.c_long
    pid = libc.syscall(ctypes.c_long(435), arguments, ctypes.c_long(64))
    if pid == 0:
        os._exit(0)
    if pid < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return "cloned"


@escape
def load_a_module() -> object:
    return call("init_module", b"", 0, b"")


@escape
def modprobe() -> object:
    return run("modprobe", "dummy_hcd")


@escape
def load_a_bpf_program() -> object:
    return call("bpf", 0, b"\0" * 72, 72)


@escape
def open_a_perf_event() -> object:
    return call("perf_event_open", b"\0" * 112, -1, 0, -1, 0)


@escape
def set_up_io_uring() -> object:
    return call("io_uring_setup", 2, b"\0" * 120)


@escape
def load_a_kernel() -> object:
    return call("kexec_load", 0, 0, None, 0)


@escape
def reboot() -> object:
    # The call switches control-alt-delete off, which is harmless.
    return call("reboot", 0xFEE1DEAD - (1 << 32), 0x28121969, 0, None)


@escape
def switch_on_swap() -> object:
    return call("swapon", b"/tmp/none", 0)


@escape
def read_the_kernel_log() -> object:
    return call("syslog", 3, ctypes.create_string_buffer(4096), 4096)


@escape
def fill_the_keyring() -> object:
    return call("add_key", b"user", b"vnet", b"x", 1, -4)


@escape
def port_access() -> object:
    return call("iopl", 3)


@escape
def become_real_time() -> object:
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    return os.getpriority(os.PRIO_PROCESS, 0) == -20


# --- the machine's settings


@escape
def set_the_clock() -> object:
    return call("clock_settime", 0, struct.pack("qq", 86400, 0))


@escape
def set_the_clock_the_old_way() -> object:
    return call("settimeofday", struct.pack("qq", 86400, 0), None)


def _sysctl(path: str, value: str) -> Callable[[], object]:
    return lambda: write(f"/proc/sys/{path}", value)


for name, (path, value) in {"core_pattern": ("kernel/core_pattern", "|/tmp/x"), "modprobe_path": ("kernel/modprobe", "/tmp/x"),
                            "pid_max": ("kernel/pid_max", "4000000"), "overcommit": ("vm/overcommit_memory", "1"),
                            "file_max": ("fs/file-max", "1")}.items():  # fmt: skip
    ESCAPES[f"set_{name}"] = _sysctl(path, value)


@escape
def sysrq() -> object:
    return write("/proc/sysrq-trigger", "h")


@escape
def change_sysfs() -> object:
    return write("/sys/kernel/mm/transparent_hugepage/enabled", "never")


@escape
def mount_control_groups() -> object:
    os.mkdir("/tmp/cg")
    return call("mount", b"none", b"/tmp/cg", b"cgroup2", 0, None)


@escape
def raise_open_files() -> object:
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))
    except ValueError:
        return None
    return "raised"


# --- the following read kernel files that only the machine's root may read


def _read_there(top: str, skip: tuple[str, ...]) -> list[str]:
    """Returns the files below `top` that not every user may read but that this node's root can read content
    from.
    """
    found = []
    for directory, inside, files in os.walk(top):
        inside[:] = [name for name in inside if f"{directory}/{name}" not in skip and not name.isdigit()]
        for path in (f"{directory}/{name}" for name in files):
            about = os.lstat(path)
            if not stat.S_ISREG(about.st_mode) or about.st_mode & 0o004:
                continue
            if path.endswith(
                "/hot_add"
            ):  # reading the file would make a device on the machine, so its existence counts as success
                found.append(path)
                continue
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                try:
                    found += [path] if os.read(descriptor, 1) else []
                finally:
                    os.close(descriptor)
    return found


@escape
def read_roots_files_of_proc() -> object:
    return _read_there("/proc", ("/proc/sys/net", "/proc/self", "/proc/thread-self"))


@escape
def read_roots_files_of_sys() -> object:
    """Tries to read root's files below /sys, except modules' parameters, which reveal nothing of the machine
    or of others.
    """
    return _read_there("/sys", ("/sys/module",))


@escape
def read_keys_and_addresses() -> object:
    names = ("keys", "key-users", "kallsyms", "timer_list", "sched_debug")
    return [name for name in names if os.path.exists(f"/proc/{name}") and text(f"/proc/{name}")]


# --- the following try other ways to reach the machine


@escape
def abstract_socket_of_the_machine() -> object:
    return socket.socket(socket.AF_UNIX).connect("\0" + TOLD["abstract"]) or "connected"


@escape
def loopback_of_the_machine() -> object:
    return socket.create_connection(("127.0.0.1", TOLD["port"]), 1)


@escape
def virtual_socket_to_the_hypervisor() -> object:
    return socket.socket(40, socket.SOCK_STREAM)  # AF_VSOCK


@escape
def shared_memory_of_the_machine() -> object:
    libc.shmget.restype = ctypes.c_int
    if libc.shmget(TOLD["shm_key"], 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return "found"


@escape
def shared_files_of_the_machine() -> object:
    return os.path.exists(f"/dev/shm/{TOLD['marker']}")


@escape
def terminals_of_the_machine() -> object:
    return [name for name in os.listdir("/dev/pts") if name != "ptmx"]


@escape
def type_into_a_terminal() -> object:
    _, slave = pty.openpty()
    fcntl.ioctl(slave, 0x5412, b"x")  # TIOCSTI, into a terminal that is not the controlling one
    return os.path.exists("/dev/tty1") and "typed"


@escape
def devices_of_the_machine() -> object:
    kinds = [
        os.stat(f"/dev/{name}").st_mode
        for name in os.listdir("/dev")
        if name not in ("fd", "stdin", "stdout", "stderr")
    ]
    known = {
        "null",
        "zero",
        "full",
        "random",
        "urandom",
        "tty",
        "ptmx",
        "pts",
        "shm",
        "net",
        "fd",
        "stdin",
        "stdout",
        "stderr",
    }
    return any(map(stat.S_ISBLK, kinds)) or set(os.listdir("/dev")) - known


@escape
def leave_something_for_another_node() -> object:
    for place in (ROOTS_HOME, "/home", "/dev", "/boot"):
        try:
            return write(f"{place}/message")
        except OSError:
            continue
    return None
