"""Runs as the first process of a host of rack.py: gives it file systems, control groups, an address and an
ssh server.

`host_init.py NAME PLACE ADDRESS...` starts in new network, mount, UTS, cgroup and process namespaces; it
waits for a line on standard input, which means that its network interface exists.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def mount_second(groups: Path) -> None:
    """Mounts the one tree of cgroup v2, and empties its root of processes, so that it can enable its
    controllers for children.
    """
    run("mount", "-t", "cgroup2", "none", str(groups))
    (groups / "host").mkdir(exist_ok=True)
    (groups / "host" / "cgroup.procs").write_text("0")
    for controller in (groups / "cgroup.controllers").read_text().split():
        (groups / "cgroup.subtree_control").write_text(f"+{controller}")


def mount_first(groups: Path, controllers: list[str]) -> None:
    """Mounts one tree of cgroup v1 for each controller."""
    run("mount", "-t", "tmpfs", "none", str(groups))
    for controller in controllers:
        (groups / controller).mkdir()
        run("mount", "-t", "cgroup", "-o", controller, "none", str(groups / controller))


def main(name: str, place: Path, *addresses: str) -> None:
    sys.stdin.readline()
    socket.sethostname(name)
    run("mount", "--make-rprivate", "/")
    for directory in ("/run", "/tmp"):
        kept = Path(place)  # the tests' own files stay visible
        run("mount", "--bind", str(kept), "/mnt")
        run("mount", "-t", "tmpfs", "none", directory)
        kept.mkdir(parents=True, exist_ok=True)
        run("mount", "--move", "/mnt", str(kept))
    groups = Path("/sys/fs/cgroup")
    controllers = sorted(entry.name for entry in groups.iterdir() if (entry / "cgroup.procs").exists())
    second = (groups / "cgroup.controllers").exists()
    run("umount", "-R", "-l", str(groups))
    run("mount", "-t", "sysfs", "none", "/sys")
    if second:
        mount_second(groups)
    else:
        mount_first(groups, controllers)
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "set", "eth0", "up")
    for address in addresses:
        run("ip", "address", "add", address, "dev", "eth0", *(["nodad"] if ":" in address else []))
    Path("/run/sshd").mkdir(mode=0o755)
    Path("/run/netns").mkdir()
    os.execv("/usr/sbin/sshd", ["/usr/sbin/sshd", "-D", "-e", "-f", str(place / "sshd_config")])


main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
