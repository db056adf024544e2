"""Reads the interfaces of this process's network namespace, and determines those that the machine needs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from orchestrator.nics.model import Netdev, NicError

Entry = dict[str, Any]


def ip(*arguments: str, netns: str | None = None) -> list[Entry]:
    """Returns the entries of `ip -j ARGUMENTS`, without empty ones, in a named namespace or in this one;
    raises NicError if the command fails.
    """
    where = ["-n", netns] if netns else []
    answer = run(["ip", "-j", *where, *arguments])
    return [entry for entry in json.loads(answer or "[]") if entry]


def run(command: list[str]) -> str:
    """Runs a command and returns its standard output; raises NicError, with its standard error, if it fails
    or is not installed.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NicError(f"{command[0]}: {error.strerror}; apt-get install iproute2") from error
    if done.returncode != 0:
        raise NicError(f"{' '.join(command)}: {done.stderr.strip() or f'status {done.returncode}'}")
    return done.stdout


def netdevs() -> tuple[Netdev, ...]:
    """Returns all interfaces of this namespace except the loopback; raises NicError if `ip` fails."""
    return tuple(from_entry(e) for e in ip("-d", "addr") if e.get("link_type") != "loopback")


def from_entry(entry: Entry) -> Netdev:
    """Converts one entry of `ip -d -j addr`; leaves out link-local addresses."""
    flags = entry.get("flags", ())
    addresses = tuple(
        f"{a['local']}/{a['prefixlen']}" for a in entry.get("addr_info", ()) if a.get("scope") != "link"
    )
    return Netdev(
        name=entry["ifname"],
        index=entry["ifindex"],
        mac=entry.get("address", ""),
        mtu=entry.get("mtu", 1500),
        up="UP" in flags,
        carrier="LOWER_UP" in flags,
        kind=entry.get("linkinfo", {}).get("info_kind", ""),
        master=entry.get("master"),
        lower=entry.get("link") if entry.get("linkinfo", {}).get("info_kind") != "veth" else None,
        addresses=addresses,
        altnames=tuple(entry.get("altnames", ())),
    )


def management() -> dict[str, str]:
    """Returns the interfaces that the machine needs, each with the reason: those of default routes, of the
    ssh session, and all below them. Raises NicError if `ip` fails.
    """
    routes = [*ip("-4", "route", "show", "default"), *ip("-6", "route", "show", "default")]
    devices = [d for r in routes for d in (r.get("dev"), *(h.get("dev") for h in r.get("nexthops", ()))) if d]
    return needed(netdevs(), devices, ssh_address(os.environ, os.getpid()))


def needed(devices: Iterable[Netdev], default_routes: Iterable[str], ssh: str | None) -> dict[str, str]:
    """Returns those of `devices` that the machine needs, with reasons: default routes, the ssh session, and
    all interfaces below these. `ssh`: the local address of the session; None without one.
    """
    by_name = {d.name: d for d in devices}
    found: dict[str, str] = {}
    for name in default_routes:
        mark(found, by_name, name, "it carries the machine's default route")
    for device in by_name.values():
        if ssh is not None and ssh in (a.partition("/")[0] for a in device.addresses):
            mark(found, by_name, device.name, "your ssh session comes in through it")
    return found


def mark(found: dict[str, str], devices: Mapping[str, Netdev], name: str, why: str) -> None:
    """Adds `name` and all interfaces below it (ports of a bridge or bond, the parent of a VLAN) to `found`
    with the reason; does nothing if it is in `found` or not in `devices`.
    """
    if name in found or name not in devices:
        return
    found[name] = why
    lower = devices[name].lower
    below = [d.name for d in devices.values() if d.master == name] + ([lower] if lower else [])
    for other in below:
        mark(found, devices, other, f"{name} stands on it, and {why.removeprefix('it ')}")


def ssh_address(environment: Mapping[str, str], pid: int, proc: Path = Path("/proc")) -> str | None:
    """Returns the machine's own address of the ssh session that started this process; None without a session.
    Reads the environment of its ancestors if `environment` lacks the variable, since `sudo` removes it.
    """
    connection = environment.get("SSH_CONNECTION", "")
    while not connection and pid > 1:
        try:
            words = (proc / str(pid) / "environ").read_bytes().split(b"\0")
            status = (proc / str(pid) / "stat").read_text()
        except OSError:
            return None
        lines = [w.decode(errors="replace") for w in words if w.startswith(b"SSH_CONNECTION=")]
        connection = lines[0].partition("=")[2] if lines else ""
        pid = int(status.rpartition(")")[2].split()[1])
    fields = connection.split()
    return fields[2].partition("%")[0] if len(fields) == 4 else None
