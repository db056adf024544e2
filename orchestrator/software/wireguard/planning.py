"""Plans ends of WireGuard tunnels: keys, the device's configuration, and the routes into the tunnels."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from collections.abc import Iterator, Sequence
from pathlib import Path

from contract.plan import File, Probe, Process, Software

from ..kind import Planned
from ..programs import READY
from ..scene import Placed, Scene
from .file import DEVICE, WireguardOptions

HERE = Path(__file__).parent
PROGRAM = "wireguard.sh"


def keys(scene: Scene, node: str) -> tuple[str, str]:
    """Returns the private and the public key of a node in base64 (Curve25519, RFC 7748). Equal seeds give
    equal keys, so they protect nothing outside the lab.
    """
    # imported here: only files with tunnels need it
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    seed = scene.seed_for("wireguard", node).to_bytes(8, "big")
    secret = X25519PrivateKey.from_private_bytes(hashlib.sha256(seed).digest())
    public = secret.public_key().public_bytes_raw()
    return tuple(base64.b64encode(one).decode() for one in (secret.private_bytes_raw(), public))  # type: ignore[return-value]


def plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every end of the lab, in the order given."""
    options = {placed.node: placed.model.wireguard for placed in all_of_it}
    for placed in all_of_it:
        own = options[placed.node]
        peers = [(name, options[name]) for name in own.peers]
        subnets = [net for peer in own.peers.values() for net in peer.allows]
        process = Process(
            argv=("sh", f"{placed.name}/{PROGRAM}"),
            env={
                "DIR": placed.name,
                "DEVICE": DEVICE,
                "ADDRESS": own.address,
                "MTU": str(own.mtu),
                "PEERS": str(len(peers)),
            },
            files=(
                File(f"{placed.name}/{PROGRAM}", (HERE / PROGRAM).read_text()),
                File(f"{placed.name}/tunnels.conf", _configuration(scene, placed.node, own, peers)),
                File(f"{placed.name}/subnets", "".join(f"{net}\n" for net in subnets)),
            ),
            ready=Probe(log=READY),
        )
        spec = {"address": own.address, "peers": list(own.peers), "subnets": subnets, "configures": DEVICE}
        yield Planned(Software(placed.name, "utility", placed.kind, process, spec=spec))


def _configuration(
    scene: Scene, node: str, own: WireguardOptions, peers: Sequence[tuple[str, WireguardOptions]]
) -> str:
    """Returns the device's configuration for `wg setconf` (wg(8))."""
    lines = ["[Interface]", f"PrivateKey = {keys(scene, node)[0]}", f"ListenPort = {own.port}"]
    for name, theirs in peers:
        address, peer = scene.address(name, node), own.peers[name]
        host = f"[{address}]" if ":" in address else address
        inside = ipaddress.ip_interface(theirs.address).ip
        allowed = ", ".join([f"{inside}/{inside.max_prefixlen}", *peer.allows])
        lines += [
            "[Peer]",
            f"PublicKey = {keys(scene, name)[1]}",
            f"Endpoint = {host}:{theirs.port}",
            f"AllowedIPs = {allowed}",
        ]
        if peer.keepalive is not None:
            lines.append(f"PersistentKeepalive = {max(1, peer.keepalive // 10**9)}")
    return "\n".join([*lines, ""])
