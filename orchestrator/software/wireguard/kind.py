"""Enters ends of WireGuard tunnels in the registry: their description for readers, port and programs."""

from __future__ import annotations

from contract.plan import Program

from ..kind import Bind, Costs, Kind
from .checks import check
from .file import Wireguard
from .planning import plan

_MEMORY_BYTES = 20_000_000  # about the PSS of wireguard-go
_MISSING = "topologies with WireGuard fail when their nodes start"


def _version(package: str) -> tuple[str, ...]:
    return ("dpkg-query", "-W", "-f", "${Version}", package)


KIND = Kind(
    name="wireguard",
    key="wireguard",
    model=Wireguard,
    what="an end of WireGuard tunnels",
    example="wireguard: {address: 10.99.0.1/24, peers: [other]}",
    check=check,
    plan=plan,
    words=lambda software, _flows: (
        f"WireGuard {software.spec['address']} to {', '.join(software.spec['peers'])}"
    ),
    costs=lambda software, _flows: Costs(_MEMORY_BYTES, peers=len(software.spec["peers"])),
    in_agent=False,
    endpoint=lambda _model: False,
    binds=lambda model: (Bind("udp", model.wireguard.port, ("wireguard", "port"), "choose another port"),),
    programs=(
        Program("wg", "wireguard-tools", _version("wireguard-tools"), _MISSING),
        Program("wireguard-go", "wireguard-go", _version("wireguard-go"), _MISSING),
    ),
    titles={"WireguardOptions": "software.NAME.wireguard: tunnels", "TunnelPeer": "wireguard's peers.NAME"},
)
