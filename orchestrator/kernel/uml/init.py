"""First process of a User-Mode Linux lab: builds the root that the lab sees, then continues as its
supervisor.

The kernel's root is the host's / by hostfs, read-only; the lab gets an overlay of it, so that writes to /etc
and the like stay in the guest's memory. boot.py starts this as `python3 -S -s init.py SETTINGS`, a JSON file,
since the kernel's command line is too short for paths: `run_dir` (writable host directory), `state` (the
lab's directory in the guest), `shown` (files and directories of the host's /run and /tmp), `modules`
(directory or ""), `queues` (modules of the kinds of queue), `code`, and the keys that guest.py reads.

The file calls libc itself, because starting a program takes 30 ms under Debian's kernel.
"""

import ctypes
import fcntl
import json
import os
import resource
import socket
import struct
import sys
from pathlib import Path

READ_ONLY, REMOUNT, BIND = 1, 32, 4096  # include/uapi/linux/mount.h
DETACH = 2  # MNT_DETACH
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
MODULES = (
    "bridge veth dummy ifb sch_netem sch_htb sch_tbf sch_ingress "
    "cls_u32 cls_matchall cls_flower cls_basic act_mirred act_gact act_police"
)
libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)


def mount(kind: str, place: str, options: str = "", flags: int = 0) -> None:
    given = (b"none", os.fsencode(place), kind.encode(), flags, os.fsencode(options))
    check(libc.mount(*given), f"mount {kind} at {place}")


def host_mount(directory: str, place: str) -> None:
    try:
        mount("hostfs", place, directory)
    except OSError:  # Linux 6.12 and newer refuse this option
        mount("hostfs", place, f"hostfs={directory}")


def bind(source: str, place: str) -> None:
    """Mounts the file or directory `source` at `place`, and makes `place`. Skips a source that does not
    exist, and a place that exists, since a directory above it is mounted already.
    """
    if not Path(source).exists() or Path(place).exists():
        return
    if Path(source).is_dir():
        Path(place).mkdir(parents=True, exist_ok=True)
    else:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).touch()
    check(libc.mount(os.fsencode(source), os.fsencode(place), b"", BIND, b""), f"mount at {place}")


def run(*words: str) -> None:
    status = os.spawnvp(os.P_WAIT, words[0], words)
    if status != 0:
        raise OSError(f"{' '.join(words[:2])}: status {status}")


def make_root(run_dir: str, state: str, modules: str, shown: list[str]) -> None:
    """Builds the lab's root below /run/root and makes it /: an overlay over the host's files, whose changes
    stay in memory. It has its own /run, /tmp and kernel file systems; /run and /tmp show the host's paths
    `shown` read-only. The host's files are read-only at /host, and writes to `run_dir` reach the host. Raises
    OSError.
    """
    mount("tmpfs", "/run", "size=90%,mode=755")
    for name in ("upper", "work", "root"):
        Path("/run", name).mkdir()
    # Debian's kernel has overlay as a module, which is needed before /lib/modules exists.
    overlay = Path(modules, "kernel/fs/overlayfs/overlay.ko")
    if modules and overlay.exists():
        run("insmod", str(overlay))
    mount("overlay", "/run/root", "lowerdir=/,upperdir=/run/upper,workdir=/run/work")
    os.chdir("/run/root")
    for name in ("proc", "sys", "dev", "run", "tmp", "host"):
        Path(name).mkdir(exist_ok=True)
    mount("proc", "proc")
    mount("sysfs", "sys")
    mount("devtmpfs", "dev")
    for name in ("dev/pts", "dev/shm"):
        Path(name).mkdir(exist_ok=True)
    mount("devpts", "dev/pts", "mode=620,ptmxmode=666")
    mount("tmpfs", "dev/shm", "mode=1777")
    mount("tmpfs", "run", "mode=755")
    mount("tmpfs", "tmp", "mode=1777")
    mount("cgroup2", "sys/fs/cgroup")
    host_mount("/", "host")
    mount("", "host", flags=REMOUNT | BIND | READ_ONLY)
    for path in shown:  # the paths are sorted, so that a directory comes before its content
        bind(f"host{path}", f".{path}")
    for path in (run_dir, state):
        Path(f".{path}").mkdir(parents=True, exist_ok=True)
    host_mount(run_dir, f".{run_dir}")
    if modules:
        link = Path("lib/modules", os.uname().release)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(modules)
    Path("run/oldroot").mkdir()
    check(libc.pivot_root(b".", b"run/oldroot"), "pivot_root")
    os.chdir("/")
    check(libc.umount2(b"/run/oldroot", DETACH), "umount /run/oldroot")


def set_up(modules: str, queues: list[str], limits: dict[str, int], open_files: int) -> None:
    """Configures the lab's kernel: name lookup, modules, cgroup controllers, write-back times, loopback, open
    files, host name. limits: values by files below /proc/sys; open_files: the most files that one process may
    open.
    """
    # Other user settings of the machine (a directory, systemd) must not influence a lab.
    users = "".join(f"{name}: files\n" for name in ("passwd", "group", "shadow", "hosts"))
    Path("/etc/nsswitch.conf").write_text(users)
    if modules:
        run("modprobe", "-a", *MODULES.split())
        for queue in queues:  # the kernel can lack a module; `tc` reports it if a link needs it
            os.spawnvp(os.P_WAIT, "modprobe", ("modprobe", "-q", queue))
    groups = Path("/sys/fs/cgroup")
    for controller in (groups / "cgroup.controllers").read_text().split():
        (groups / "cgroup.subtree_control").write_text(f"+{controller}")
    # Writes results to the host every second or two, so that a killed lab loses at most two seconds of them.
    for name in ("dirty_writeback_centisecs", "dirty_expire_centisecs"):
        Path("/proc/sys/vm", name).write_text("100")
    for name, value in limits.items():
        if Path("/proc/sys", name).exists():
            Path("/proc/sys", name).write_text(str(value))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))
    socket.sethostname("vnet-lab")


def main() -> None:
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    try:
        settings = json.loads(Path(sys.argv[1]).read_text())
        make_root(settings["run_dir"], settings["state"], settings["modules"], settings["shown"])
        set_up(settings["modules"], settings["queues"], settings["limits"], settings["open_files"])
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    except OSError as error:
        # The host looks for this line on the console; then the kernel stops, because process 1 ends.
        sys.exit(f"vnet-boot: failed: {error.filename or ''}: {error.strerror or error}")
    sys.path[:1] = settings["env"]["PYTHONPATH"].split(os.pathsep)  # replaces the directory of this file
    from orchestrator.kernel.uml import guest

    guest.main(settings)


main()
