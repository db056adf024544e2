"""Tries to escape from the confinement of QEMU, with QEMU's account, groups and namespaces; prints the number
of attempts and those that succeeded. It uses only the standard library; its argument describes the lab as
JSON (vm_escapes.py).
"""

import ctypes
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

TOLD = json.loads(sys.argv[1])
STATE, OTHER, RESULTS = (Path(TOLD[name]) for name in ("state", "other", "run_dir"))
DISKS = ("sd", "vd", "nv", "dm", "loop")
libc = ctypes.CDLL(None, use_errno=True)


def listed(directory: Path) -> bool:
    return bool(list(directory.iterdir()))


def read(path: Path) -> bool:
    with path.open("rb") as file:
        return bool(file.read(1))


def write(*paths: Path) -> bool:
    for path in paths:
        with path.open("ab"):
            return True
    return False


def connect(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as to:
        to.connect(str(path))
    return True


def become(call: Callable[[int], None], number: int) -> bool:
    call(number)
    return True


def signalled(pid: int) -> bool:
    os.kill(pid, 9)
    return True


def set_clock() -> bool:
    time.clock_settime(time.CLOCK_REALTIME, time.time())
    return True


def device() -> bool:
    os.mknod("/dev/shm/planted", 0o60600, os.makedev(8, 0))
    return True


ATTEMPTS: dict[str, Callable[[], bool]] = {
    "read_shadow": lambda: read(Path("/etc/shadow")),
    "list_roots_home": lambda: listed(Path(TOLD["home"])),
    "list_own_lab": lambda: listed(STATE),
    "list_machines_of_own_lab": lambda: listed(STATE / "vm"),
    "list_other_lab": lambda: listed(OTHER),
    "read_other_lab": lambda: read(OTHER / "lab.json"),
    "read_other_disk": lambda: read(OTHER / "vm/a/disk.qcow2"),
    "reach_control_socket": lambda: connect(STATE / "control.sock"),
    "reach_launcher": lambda: connect(STATE / "agent.sock"),
    "change_lab": lambda: write(STATE / "lab.json"),
    "change_libvirts_settings": lambda: write(STATE / "v/etc/qemu.conf"),
    "change_domain": lambda: write(STATE / "vm/guest/domain.xml"),
    "plant_in_lab": lambda: write(STATE / "planted"),
    "plant_beside_disk": lambda: write(STATE / "vm/guest/planted"),
    "change_kernel": lambda: write(Path(TOLD["images"][0])),
    "change_last_image": lambda: write(Path(TOLD["images"][-1])),
    "plant_in_results": lambda: write(RESULTS / "planted"),
    "change_manifest": lambda: write(RESULTS / "manifest.json"),
    "plant_in_etc": lambda: write(Path("/etc/planted")),
    "see_disks_of_the_machine": lambda: any(d.name.startswith(DISKS) for d in Path("/dev").iterdir()),
    "read_memory_of_the_machine": lambda: read(Path("/dev/mem")),
    "make_a_device": device,
    "look_into_lab_process": lambda: read(Path("/proc", str(TOLD["lab"]), "environ")),
    "look_into_other_labs_machine": lambda: read(Path("/proc", str(TOLD["sibling"]), "environ")),
    "end_lab_process": lambda: signalled(TOLD["lab"]),
    "become_root": lambda: become(os.setuid, 0),
    "join_other_lab": lambda: become(os.setgid, TOLD["group"]),
    "raw_packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).fileno() >= 0,
    "set_clock": set_clock,
    "change_a_setting": lambda: write(Path("/proc/sys/kernel/core_pattern")),
    "mount": lambda: libc.mount(b"none", b"/dev/shm", b"tmpfs", 0, None) == 0,
    "root_by_a_program": lambda: os.spawnvp(os.P_WAIT, "su", ["su", "-c", "true"]) == 0,
}


def got_through(attempt: Callable[[], bool]) -> bool:
    try:
        return attempt()
    except OSError:
        return False


through = [name for name, attempt in ATTEMPTS.items() if got_through(attempt)]
sys.stdout.write(json.dumps({"tried": len(ATTEMPTS), "through": through}) + "\n")
