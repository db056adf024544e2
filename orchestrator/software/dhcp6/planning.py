"""Plans DHCPv6 servers and clients: the planned address of each client, the server's configuration, the
client's program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv6Network
from pathlib import Path

from contract.plan import File, Interface, Probe, Process, Software

from ..dnsmasq import server
from ..kind import Planned
from ..programs import READY
from ..scene import Placed, Scene
from ..slaac.planning import card_of
from .file import Client6Options, Dhcp6Options

HERE = Path(__file__).parent


def plan_servers(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every DHCPv6 server of the lab, in the order given."""
    for placed in all_of_it:
        options: Dhcp6Options = placed.model.dhcp6
        card = card_of(scene, placed.node, options.segment)
        network, lease_s = IPv6Network(card.subnet), options.lease // 10**9
        clients = list(_clients(scene, card.subnet))
        dns = "" if options.dns is None else f",[{scene.address(options.dns, placed.node, 'IPv6')}]"
        lines = [
            "port=0",  # without its name server, which is a kind of its own
            "log-dhcp",
            "dhcp-authoritative",
            f"dhcp-leasefile={placed.name}/leases",
            f"interface={card.name}",
            "bind-dynamic",
            f"dhcp-range={network.network_address},static,{network.prefixlen},{lease_s}",
            f"dhcp-option=option6:dns-server{dns}",  # without an address none is sent
            *(f"dhcp-host={theirs.mac},[{theirs.address}],{node}" for node, theirs in clients),
        ]
        spec = {
            "segment": card.segment, "subnet": card.subnet, "clients": [node for node, _ in clients],
            "lease_s": lease_s,
        }  # fmt: skip
        yield Planned(Software(placed.name, "server", placed.kind, server(placed, lines), spec=spec))


def _clients(scene: Scene, subnet: str) -> Iterator[tuple[str, Interface]]:
    """Yields the clients of a subnet, with the interface that each configures."""
    for placed in (one for of_node in scene.placed.values() for one in of_node):
        if placed.kind == "dhcp6-client":
            card = card_of(scene, placed.node, placed.model.dhcp6_client.segment)
            if card.subnet == subnet:
                yield placed.node, card


def plan_clients(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every DHCPv6 client of the lab, in the order given."""
    for placed in all_of_it:
        options: Client6Options = placed.model.dhcp6_client
        card = card_of(scene, placed.node, options.segment)
        files = {name: (HERE / name).read_text() for name in ("client6.sh", "leased6.sh")}
        process = Process(
            argv=("sh", f"{placed.name}/client6.sh"),
            env={"DIR": placed.name, "DEVICE": card.name, "PLANNED": f"{card.address}/{card.prefix}"},
            files=tuple(
                File(f"{placed.name}/{name}", text, 0o755 if name == "leased6.sh" else 0o644)
                for name, text in files.items()
            ),
            ready=Probe(log=READY, deadline_ns=options.ready_within),
        )
        spec = {"segment": card.segment, "configures": card.name, "address": card.address}
        yield Planned(Software(placed.name, "utility", placed.kind, process, spec=spec))
