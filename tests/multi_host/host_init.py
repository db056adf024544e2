"""First process of a host of rack.py: file systems, control groups, address and ssh server of its own.

Started in network, mount, UTS, cgroup and process namespaces of its own by `host_init.py NAME PLACE
ADDRESS...`; it waits for a line on standard input, by which its wire is there.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def mount_second(groups: Path) -> None:
    """The one tree of cgroups: in its root are no processes, so that it may give its controllers on."""
    run("mount", "-t", "cgroup2", "none", str(groups))
    (groups / "host").mkdir(exist_ok=True)
    (groups / "host" / "cgroup.procs").write_text("0")
    for controller in (groups / "cgroup.controllers").read_text().split():
        (groups / "cgroup.subtree_control").write_text(f"+{controller}")


def mount_first(groups: Path, controllers: list[str]) -> None:
    """A tree a controller."""
    run("mount", "-t", "tmpfs", "none", str(groups))
    for controller in controllers:
        (groups / controller).mkdir()
        run("mount", "-t", "cgroup", "-o", controller, "none", str(groups / controller))


def main(name: str, place: Path, *addresses: str) -> None:
    sys.stdin.readline()
    socket.sethostname(name)
    run("mount", "--make-rprivate", "/")
    for directory in ("/run", "/tmp"):
        kept = Path(place)  # tests' own files stay to be seen
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
