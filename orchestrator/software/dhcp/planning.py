"""Plans DHCP servers and clients: the server of each client, the server's configuration, the client's
program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from contract.plan import File, Interface, Probe, Process, Software
from contract.plan.family import faces, family

from ..dnsmasq import server
from ..kind import Planned, SoftwareError
from ..programs import READY
from ..scene import Placed, Scene
from .file import ClientOptions, DhcpOptions, Range

HERE = Path(__file__).parent


def plan_servers(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every DHCP server of the lab; raises SoftwareError if a range holds a node's address."""
    for placed in all_of_it:
        options: DhcpOptions = placed.model.dhcp
        card = _card(scene, placed, options.segment)
        subnet = card.subnet
        clients = list(_clients(scene, subnet))
        if options.range is not None:
            _free_of_nodes(scene, placed, options.range, subnet)
        spec = {
            "segment": card.segment,
            "subnet": subnet,
            "clients": [client for client, _ in clients],
            "range": [options.range.first, options.range.last] if options.range else None,
            "lease_s": options.lease // 10**9,
        }
        process = server(placed, _config(scene, placed, card, clients))
        yield Planned(Software(placed.name, "server", placed.kind, process, spec=spec))


def _config(
    scene: Scene, placed: Placed, card: Interface, clients: Sequence[tuple[str, Interface]]
) -> list[str]:
    """Returns dnsmasq's configuration (dnsmasq(8)): every client's hardware address with its planned
    address, and the range for all others.
    """
    options: DhcpOptions = placed.model.dhcp
    subnet = IPv4Network(card.subnet)
    lease, mask = options.lease // 10**9, subnet.netmask
    given = {"router": options.router, "dns-server": options.dns}
    lines = [
        "port=0",  # without dnsmasq's name server, which is a separate kind
        "log-dhcp",
        "no-ping",
        "dhcp-authoritative",
        f"dhcp-leasefile={placed.name}/leases",
        f"interface={card.name}",
        "bind-interfaces",
        f"dhcp-range={subnet.network_address},static,{mask},{lease}",
    ]
    if options.range is not None:
        lines.append(f"dhcp-range={options.range.first},{options.range.last},{mask},{lease}")
    for option, node in given.items():
        address = "" if node is None else f",{_near(scene, node, placed.node, subnet)}"
        # an option without an address is not sent to clients
        lines.append(f"dhcp-option=option:{option}{address}")
    lines += [f"dhcp-host={theirs.mac},{theirs.address},{node}" for node, theirs in clients]
    return lines


def _near(scene: Scene, node: str, seen_from: str, subnet: IPv4Network) -> str:
    """Returns the node's address in the clients' subnet, else the one that routes reach."""
    near = (card.address for card in faces(scene.interfaces[node]) if card.subnet == str(subnet))
    return next(near, None) or scene.address(node, seen_from, "IPv4")


def _clients(scene: Scene, subnet: str) -> Iterator[tuple[str, Interface]]:
    """Yields the clients of a subnet, with the interface that each configures."""
    for placed in (one for of_node in scene.placed.values() for one in of_node):
        if placed.kind == "dhcp-client":
            card = _card(scene, placed, placed.model.dhcp_client.segment)
            if card.subnet == subnet:
                yield placed.node, card


def _free_of_nodes(scene: Scene, placed: Placed, wanted: Range, subnet: str) -> None:
    first, last = IPv4Address(wanted.first), IPv4Address(wanted.last)
    for node, cards in scene.interfaces.items():
        for card in faces(cards):
            if card.subnet == subnet and first <= IPv4Address(card.address) <= last:
                rule = f"{placed.name}: the range {first} to {last} holds {card.address}, which is {node}'s"
                remedy = "write a range above the addresses of `vnet plan`, or a larger subnet"
                raise SoftwareError(placed.node, rule, remedy)


def plan_clients(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every DHCP client of the lab, in the order given."""
    for placed in all_of_it:
        options: ClientOptions = placed.model.dhcp_client
        card = _card(scene, placed, options.segment)
        files = {name: (HERE / name).read_text() for name in ("client.sh", "leased.sh")}
        process = Process(
            argv=("sh", f"{placed.name}/client.sh"),
            env={
                "DIR": placed.name,
                "DEVICE": card.name,
                "PLANNED": f"{card.address}/{card.prefix}",
                "NODE": placed.node,
            },
            files=tuple(
                File(f"{placed.name}/{name}", text, 0o755 if name == "leased.sh" else 0o644)
                for name, text in files.items()
            ),
            ready=Probe(log=READY, deadline_ns=options.ready_within),
        )
        spec = {"segment": card.segment, "configures": card.name, "address": card.address}
        yield Planned(Software(placed.name, "utility", placed.kind, process, spec=spec))


def _card(scene: Scene, placed: Placed, segment: str | None) -> Interface:
    """Returns the node's interface on the segment, or its only one, with its IPv4 address."""
    cards = faces(scene.interfaces[placed.node])
    return next(card for card in cards if segment in (None, card.segment) and family(card.address) == "IPv4")
