"""Starts Debian's dnsmasq as a DHCP or DNS server, with a configuration that depends on the lab only."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import File, Probe, Process, Program

from .scene import Placed

MEMORY_BYTES = 3_000_000  # about the PSS of dnsmasq 2.90
PROGRAM = Program(
    "dnsmasq",
    "dnsmasq-base",
    ("dnsmasq", "--version"),
    "topologies with servers of DHCP or DNS fail when their nodes start",
)
# Lines of every configuration (dnsmasq(8)): dnsmasq is root in its node and logs like all other programs.
COMMON = ("user=root", "group=root", "pid-file=", "log-facility=-")
SERVES = "started, version"  # dnsmasq writes this when its sockets are bound


def server(placed: Placed, lines: Sequence[str]) -> Process:
    """Returns the process of a server with these lines of configuration."""
    config = f"{placed.name}/dnsmasq.conf"
    return Process(
        argv=("dnsmasq", "--keep-in-foreground", f"--conf-file={config}"),
        files=(File(config, "\n".join([*COMMON, *lines, ""])),),
        ready=Probe(log=SERVES),
    )
