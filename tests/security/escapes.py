"""Runs inside a node, as its root: each function tries to get out or to be allowed something; says so as JSON.

Standard library only, given to the node as a file. A function of `ESCAPES` answers what it got (anything true),
or nothing, or raises OSError: then it was refused. One of `NEEDS` must not raise and answers anything true.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import pty
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable

libc = ctypes.CDLL(None, use_errno=True)
TOLD = json.loads(os.environ["TOLD"])  # what there is outside: see conftest.py
ESCAPES: dict[str, Callable[[], object]] = {}
NEEDS: dict[str, Callable[[], object]] = {}
SYS = {"mount": 165, "umount2": 166, "setns": 308, "unshare": 272, "init_module": 175, "bpf": 321, "reboot": 169,
       "perf_event_open": 298, "io_uring_setup": 425, "open_by_handle_at": 304, "add_key": 248, "kexec_load": 246,
       "syslog": 103, "clock_settime": 227, "settimeofday": 164, "userfaultfd": 323, "fsopen": 430, "swapon": 167,
       "pivot_root": 155, "move_mount": 429, "clone3": 435, "sethostname": 170, "acct": 163, "iopl": 172,
       "quotactl": 179, "process_vm_readv": 310}  # fmt: skip


def escape(function: Callable[[], object]) -> Callable[[], object]:
    ESCAPES[function.__name__] = function
    return function


def need(function: Callable[[], object]) -> Callable[[], object]:
    NEEDS[function.__name__] = function
    return function


def call(name: str, *args: object) -> bool:
    """A system call by number: true where the kernel did it."""
    plain = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    if libc.syscall(ctypes.c_long(SYS[name]), *plain) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


def run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=8, check=False)
    if done.returncode:
        raise OSError(done.returncode, done.stderr[-200:])
    return done.stdout or "done"


def text(path: str) -> str:
    with open(path, errors="replace") as file:
        return file.read()


def write(path: str, content: str = "x") -> str:
    with open(path, "w") as file:
        file.write(content)
    return path


# --- the machine's files


def _writes(where: str) -> Callable[[], object]:
    return lambda: write(f"{where}/vnet-was-here")


for name, where in {"etc": "/etc", "root": "/root", "home": "/home", "usr": "/usr/bin", "var": "/var/lib",
                    "cron": "/etc/cron.d", "boot": "/boot", "slash": "/", "opt": "/opt", "dev": "/dev"}.items():  # fmt: skip
    ESCAPES[f"write_into_{name}"] = _writes(where)


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
    return os.listdir("/root")


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
    return os.path.exists("/root/.bashrc") or write("/etc/vnet-was-here")


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
    return os.listdir("/root")


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
    return os.readlink("/proc/1/fd/4") or os.listdir("/proc/1/root/root")


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
    return call("reboot", 0xFEE1DEAD - (1 << 32), 0x28121969, 0, None)  # control-alt-delete off: harmless


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


# --- other ways to the machine


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
    fcntl.ioctl(slave, 0x5412, b"x")  # TIOCSTI into a terminal that is not the own controlling one
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
    for place in ("/root", "/home", "/dev", "/boot"):
        try:
            return write(f"{place}/message")
        except OSError:
            continue
    return None


# --- what a node needs


@need
def is_root() -> object:
    return os.geteuid() == 0


@need
def write_own_places() -> object:
    return all(
        write(f"{place}/x") for place in (".", "/tmp", "/run", "/var/tmp", "/dev/shm", os.environ["HOME"])
    )


@need
def own_directory_is_home() -> object:
    return os.path.samefile(".", os.environ["HOME"])


@need
def configure_interfaces() -> object:
    run("ip", "link", "add", "veth-a", "type", "veth", "peer", "name", "veth-b")
    return run("ip", "link", "del", "veth-a")


@need
def queueing() -> object:
    run("ip", "link", "add", "veth-q", "type", "veth", "peer", "name", "veth-r")
    run(
        "tc",
        "qdisc",
        "add",
        "dev",
        "veth-q",
        "root",
        "tbf",
        "rate",
        "1mbit",
        "burst",
        "10kb",
        "latency",
        "50ms",
    )
    return run("ip", "link", "del", "veth-q")


@need
def network_settings() -> object:
    write("/proc/sys/net/ipv4/ip_forward", "1")
    write("/proc/sys/net/ipv4/ip_forward", "0")
    return write("/proc/sys/net/ipv4/conf/lo/rp_filter", "0")


@need
def raw_sockets() -> object:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)).close()
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)


@need
def low_ports() -> object:
    server = socket.socket()
    server.bind(("127.0.0.1", 79))
    return server


@need
def capture_packets() -> object:
    return "lo" in run("tcpdump", "-D")


@need
def send_pings() -> object:
    return run("ping", "-c", "1", "-W", "2", "127.0.0.1")


@need
def change_owner_and_user() -> object:
    write("/tmp/owned")
    os.chown("/tmp/owned", 65534, 65534)
    if (pid := os.fork()) == 0:
        os.setgid(65534)
        os.setuid(65534)
        os._exit(os.geteuid() != 65534)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@need
def temporary_files_run() -> object:
    with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as file:
        file.write("#!/bin/sh\nexit 0\n")
    os.chmod(file.name, 0o755)
    return run(file.name)


@need
def terminals() -> object:
    master, slave = pty.openpty()
    return os.isatty(slave) and os.isatty(master)


@need
def own_devices_in_sysfs() -> object:
    return "eth0" in os.listdir("/sys/class/net")


@need
def tunnels() -> object:
    tun = os.open("/dev/net/tun", os.O_RDWR)
    return fcntl.ioctl(
        tun, 0x400454CA, struct.pack("16sH22x", b"tun-x", 0x1001)
    )  # TUNSETIFF, IFF_TUN | IFF_NO_PI


@need
def look_into_own_processes() -> object:
    return run("ps", "ax")


@need
def administer_as_a_router_must() -> object:
    """FRR's daemons ask for CAP_SYS_ADMIN and end without it: they have it, for the node."""
    permitted = next(line for line in text("/proc/self/status").splitlines() if line.startswith("CapPrm"))
    return not TOLD["users"] or int(permitted.split()[1], 16) >> 21 & 1


def outcome(function: Callable[[], object]) -> dict[str, object]:
    """In a process of its own, which may end in any way."""
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        signal.alarm(10)
        try:
            got = function()
            said = {"got": bool(got), "said": repr(got)[:200]}
        except OSError as error:
            said = {"got": False, "said": str(error)[:200], "refused": True}
        except Exception as error:
            said = {"got": None, "said": f"{type(error).__name__}: {error}"[:200]}
        os.write(writer, json.dumps(said).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(said) if said else {"got": False, "said": "ended", "refused": True}


def main() -> None:
    found = {name: outcome(function) for name, function in {**NEEDS, **ESCAPES}.items()}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps({sys.argv[1]: outcome({**NEEDS, **ESCAPES}[sys.argv[1]])}))
    else:
        main()
