"""Defines actions that a node's root needs for its work; each succeeds if it returns a true value and raises
nothing.
"""

from __future__ import annotations

import fcntl
import os
import pty
import socket
import struct
import tempfile

from inside import TOLD, need, run, text, write


@need
def is_root() -> object:
    return os.geteuid() == 0


@need
def write_own_places() -> object:
    return all(
        write(f"{place}/x") for place in (".", "/tmp", "/run", "/var/tmp", "/dev/shm", os.environ["HOME"])
    )


@need
def finds_nodes_by_name() -> object:
    b = socket.getaddrinfo("b", 80, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
    return b.startswith("10.77.0.") and socket.gethostbyname("a").startswith("10.77.0.")


@need
def learns_at_once_that_a_name_is_unknown() -> object:
    try:
        return not socket.gethostbyname("no-such-node.example")
    except socket.gaierror:
        return True


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
    """Returns whether the node's root has CAP_SYS_ADMIN in the node, without which FRR's daemons end."""
    permitted = next(line for line in text("/proc/self/status").splitlines() if line.startswith("CapPrm"))
    return not TOLD["users"] or int(permitted.split()[1], 16) >> 21 & 1
