"""Plans routers that advertise (dnsmasq) and hosts that configure themselves (the kernel)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path

from contract.plan import File, Interface, Probe, Process, Software
from contract.plan.family import faces, family

from ..dnsmasq import server
from ..kind import Planned
from ..programs import READY
from ..scene import Placed, Scene
from .file import AdvertiseOptions, SlaacOptions

HERE = Path(__file__).parent


def plan_routers(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every router that advertises, in the order given."""
    for placed in all_of_it:
        options: AdvertiseOptions = placed.model.advertise
        card = card_of(scene, placed.node, options.segment)
        lifetime_s, every_s = options.lifetime // 10**9, options.every // 10**9
        network = IPv6Network(card.subnet)
        lines = [
            "port=0",  # without dnsmasq's name server, which is a separate kind
            "log-dhcp",
            "enable-ra",
            f"interface={card.name}",
            "bind-dynamic",
            f"dhcp-range={network.network_address},ra-only,{network.prefixlen},{lifetime_s}",
            f"ra-param={card.name},{every_s},{lifetime_s}",
            "dhcp-option=option6:dns-server",  # none
        ]
        spec = {"segment": card.segment, "subnet": card.subnet, "lifetime_s": lifetime_s, "every_s": every_s}
        yield Planned(Software(placed.name, "server", placed.kind, server(placed, lines), spec=spec))


def plan_hosts(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every host that configures itself, in the order given."""
    for placed in all_of_it:
        options: SlaacOptions = placed.model.slaac
        card = card_of(scene, placed.node, options.segment)
        token = IPv6Address(int(IPv6Address(card.address)) & (1 << 64) - 1)
        process = Process(
            argv=("sh", f"{placed.name}/slaac.sh"),
            env={
                "DIR": placed.name,
                "DEVICE": card.name,
                "TOKEN": str(token),
                "PLANNED": f"{card.address}/{card.prefix}",
            },
            files=(File(f"{placed.name}/slaac.sh", (HERE / "slaac.sh").read_text()),),
            ready=Probe(log=READY, deadline_ns=options.ready_within),
        )
        spec = {"segment": card.segment, "configures": card.name, "address": card.address}
        yield Planned(Software(placed.name, "utility", placed.kind, process, spec=spec))


def card_of(scene: Scene, node: str, segment: str | None) -> Interface:
    """Returns the node's interface on the segment, or its first one with IPv6, with its IPv6 address."""
    segments = {link.name for link in scene.links if link.kind == "nodes"}
    return next(
        card
        for card in faces(scene.interfaces[node])
        if family(card.address) == "IPv6" and card.segment not in segments and segment in (None, card.segment)
    )
