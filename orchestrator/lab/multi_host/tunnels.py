"""Makes the VXLAN devices that connect the hosts: their packets use the host's own network, their frames
enter the core namespace.

RFC 7348; ip-link(8), bridge(8). VXLAN has neither keys nor passwords, so every host that can send to the port
can send into the segment. So the underlay must be a separate network, or use IPsec or WireGuard
(docs/many-machines.md).
"""

from __future__ import annotations

import ipaddress
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from contract.plan import Plan
from contract.plan.family import IPV6_LEAST_MTU, family
from orchestrator.lab.errors import LabError
from orchestrator.lab.loop import Loop
from orchestrator.lab.multi_host.hostpart import HostPart, ask_all

NOBODY = "00:00:00:00:00:00"  # destination in the forwarding table for frames to unknown addresses


def make(loop: Loop, plan: Plan, parts: Mapping[str, HostPart]) -> None:
    """Requests from the part on each host the devices of all tunnels that end there, as ports of bridges in
    the core namespace; does nothing if the plan has no tunnels.
    """
    if not plan.tunnels:
        return
    addresses = addresses_of(plan, parts)
    asked = {
        part: {"core": plan.core_netns, "tunnels": [
            {"device": t.device, "bridge": t.bridge, "vni": t.vni, "port": t.port, "mtu": t.mtu,
             "learning": t.learning,
             "local": addresses[name], "remotes": [addresses[end] for end in t.ends if end != name]}
            for t in plan.tunnels if name in t.ends
        ]}
        for name, part in parts.items()
    }  # fmt: skip
    ask_all(loop, "tunnels", asked)


def addresses_of(plan: Plan, parts: Mapping[str, HostPart]) -> dict[str, str]:
    """Returns underlay addresses by host. A host's address is the one in the plan, or else the one that ssh
    used, or else this machine's own.

    Raises LabError if a host has no address, if an address is loopback while another host's is not, or if
    addresses of IPv4 and IPv6 are mixed.
    """
    found = {host.name: host.address or str(parts[host.name].facts["address"]) for host in plan.hosts}
    far = next((address for address in found.values() if address), "")
    for name, address in found.items():
        mine = address or (_source(far) if far else "")
        if not mine or (ipaddress.ip_address(mine).is_loopback and len(parts) > 1 and not _all_there(found)):
            raise LabError(
                f"hosts.{name}: no address by which the other hosts reach it is known ({mine or 'none'}); "
                "write its `address:`"
            )
        found[name] = mine
    if len({family(address) for address in found.values()}) > 1:
        raise LabError(
            f"hosts: addresses of IPv4 and of IPv6 ({', '.join(found.values())}), and a tunnel has ends of "
            "one; write an `address:` of the same family for each"
        )
    return found


def _all_there(found: Mapping[str, str]) -> bool:
    """Returns whether all known addresses are loopback; an unknown address then becomes this machine's
    address towards the others.
    """
    return all(ipaddress.ip_address(address).is_loopback for address in found.values() if address)


def _source(far: str) -> str:
    """Returns the source address of this machine's packets to address `far`; empty if there is no route."""
    family = socket.AF_INET6 if ":" in far else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((far, 9))  # this only chooses an address and sends nothing
        except OSError:
            return ""
        return str(probe.getsockname()[0])


def reached_by() -> str:
    """Returns the local address of the ssh connection that started this process, from SSH_CONNECTION; empty
    if it was started without ssh.
    """
    words = os.environ.get("SSH_CONNECTION", "").split()
    return words[2] if len(words) == 4 else ""


def make_here(core: str, wanted: Sequence[Mapping[str, Any]]) -> None:
    """Makes this host's tunnel devices in the core namespace, adds them to their bridges and sets their
    forwarding entries. The VXLAN sockets stay in the host's own network. Raises LabError if `ip` or `bridge`
    fails or prints an error.
    """
    made = "".join(link_text(core, one) for one in wanted)
    ends = "".join(ends_text(one) for one in wanted)
    _batch(["ip"], made, wanted)
    _batch(["ip", "-n", core], "".join(port_text(one) for one in wanted), wanted)
    if ends:
        _batch(["bridge", "-n", core], ends, wanted)


def link_text(core: str, one: Mapping[str, Any]) -> str:
    """Returns the line for `ip -batch` that creates a tunnel's device in the namespace `core`; the line has a
    remote address only if there is exactly one other end.
    """
    learning = "learning" if one["learning"] else "nolearning"
    remote = f" remote {one['remotes'][0]}" if len(one["remotes"]) == 1 else ""
    return (
        f"link add {one['device']} netns {core} mtu {one['mtu']} type vxlan id {one['vni']} "
        f"local {one['local']}{remote} dstport {one['port']} {learning}\n"
    )


def port_text(one: Mapping[str, Any]) -> str:
    """Returns lines for `ip -batch` in the core namespace that set the device up as a port of its bridge,
    without an IPv6 link-local address. If the MTU is below IPv6's minimum, no line is needed against that
    address.
    """
    quiet = f"link set dev {one['device']} addrgenmode none\n" if one["mtu"] >= IPV6_LEAST_MTU else ""
    return f"{quiet}link set dev {one['device']} master {one['bridge']} up\n"


def ends_text(one: Mapping[str, Any]) -> str:
    """Returns lines for `bridge -batch` that send frames to unknown addresses to all other ends; empty if the
    tunnel has only two ends.
    """
    others = one["remotes"] if len(one["remotes"]) > 1 else []
    return "".join(f"fdb append {NOBODY} dev {one['device']} dst {address} self\n" for address in others)


def _batch(tool: Sequence[str], text: str, wanted: Sequence[Mapping[str, Any]]) -> None:
    done = subprocess.run([*tool, "-batch", "-"], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0 or done.stderr.strip():
        used = ", ".join(f"{one['vni']} by UDP port {one['port']}" for one in wanted[:5])
        hint = f"is one of the VNIs ({used}) another lab's there?" if "File exists" in done.stderr else ""
        raise LabError(f"tunnels: {tool[0]}: {done.stderr.strip()} {hint}".strip())
