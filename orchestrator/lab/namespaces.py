"""Finds and removes the named network namespaces of labs: /run/netns/vnet-LAB and vnet-LAB.NODE, if they bear
vNET's mark. Also disables netfilter for their bridges.

A name alone proves nothing, since other programs may use it. The agent sets MARK as the alias of the loopback
interface of each namespace that it creates, and writes MARK into the file that becomes the mount point.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from orchestrator.lab import mounts
from orchestrator.lab.entering import enter
from orchestrator.lab.errors import LabError
from orchestrator.lab.readback import Difference, insist
from orchestrator.lab.rtnetlink import IFLA_IFALIAS, REQUEST, RTM_GETLINK, attributes

NETNS = Path("/run/netns")
PREFIX = "vnet-"
MARK = "vnet"  # images/agent/src/launch/netns.rs writes the same text
LOOPBACK = 1  # index of lo in every network namespace


def of(lab: str) -> list[Path]:
    """Returns the paths of the lab's marked namespaces: its core and one per node. Lab names have no dot, so
    other labs never match.
    """
    core = f"{PREFIX}{lab}"
    return marked(n for n in _names() if n.name == core or n.name.startswith(f"{core}."))


def labs() -> set[str]:
    """Returns the names of all labs that have a marked namespace."""
    found = marked(n for n in _names() if n.name.startswith(PREFIX))
    return {n.name.removeprefix(PREFIX).partition(".")[0] for n in found}


def marked(names: Iterable[Path]) -> list[Path]:
    """Returns the namespaces in the list that vNET marked, without those that do not exist any more. Returns
    all if this process may not enter one or read its mark. Raises other OSErrors.
    """
    wanted = list(names)
    found: list[Path] = []
    failed: list[OSError] = []

    # The function runs in a separate thread, because a thread stays in the last namespace that it entered.
    def look() -> None:
        try:
            found.extend(n for n in wanted if _is_ours(n))
        except PermissionError:
            found[:] = wanted
        except OSError as error:
            failed.append(error)

    if wanted:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    if failed:
        raise failed[0]
    return found


def remove(path: Path) -> None:
    """Removes every mount on the name, then the name; either may be absent."""
    mounts.clear(path)
    path.unlink(missing_ok=True)


def inodes(paths: Sequence[Path]) -> set[tuple[int, int]]:
    """Returns (device, inode) of the namespaces with these names; omits a name that does not exist or is not
    mounted.
    """
    found = set()
    for path in paths:
        if (status := stat_of(path)) is not None and _is_mount(path, status):
            found.add((status.st_dev, status.st_ino))
    return found


def stat_of(path: Path) -> os.stat_result | None:
    """Returns the file's status; None if the file does not exist or may not be read."""
    try:
        return path.stat()
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return None


def _names() -> list[Path]:
    return sorted(NETNS.iterdir()) if NETNS.is_dir() else []


def _is_mount(path: Path, status: os.stat_result) -> bool:
    directory = stat_of(path.parent)
    return directory is not None and directory.st_dev != status.st_dev


def _is_ours(path: Path) -> bool:
    """Returns whether the namespace has vNET's mark, in its loopback interface, or in its file if nothing is
    mounted there. Moves the thread into the namespace.
    """
    status = stat_of(path)
    if status is None:
        return False
    try:
        if not _is_mount(path, status):
            return path.read_text() == MARK
        enter(path.name)
    except FileNotFoundError:  # the namespace was removed just now
        return False
    return _alias() == MARK


def _alias() -> str:
    """Returns the alias of the loopback interface in the thread's network namespace."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asked:
        asked.send(struct.pack("=IHHIIBxHiII", 32, RTM_GETLINK, REQUEST, 1, 0, 0, 0, LOOPBACK, 0, 0))
        return (
            attributes(asked.recv(65536)[32:]).get(IFLA_IFALIAS, b"").rstrip(b"\0").decode(errors="replace")
        )


# /proc/sys/net shows the namespace of the process that opens it, so a shell inside the namespace opens it.
_BYPASS = """
for name in iptables ip6tables arptables; do
    file=/proc/sys/net/bridge/bridge-nf-call-$name
    [ ! -e $file ] || { echo 0 >$file && echo $name $(cat $file); } || exit 1
done
"""


def bypass_netfilter(netns: str) -> dict[str, int]:
    """Disables netfilter for the namespace's bridges; returns the values read back, {} without br_netfilter.

    br_netfilter, if loaded, passes frames of a bridge to iptables in each network namespace. Raises LabError
    if the kernel refuses or the read-back differs, since a firewall could drop the lab's frames.
    """
    done = subprocess.run(
        ["nsenter", f"--net=/run/netns/{netns}", "sh", "-c", _BYPASS],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise LabError(
            f"{netns}: net.bridge.bridge-nf-call-*: cannot be set to 0 ({done.stderr.strip()}); unload "
            "br_netfilter, or mount /proc/sys so that it can be written"
        )
    read = {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())}
    place = f"{netns}.net.bridge.bridge-nf-call"
    insist([Difference(f"{place}-{name}", 0, value) for name, value in read.items() if value])
    return read
