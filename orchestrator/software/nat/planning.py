"""Plans translating routers: the rules of nf_tables that each sets, and the program that holds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from contract.plan import File, Interface, Probe, Process, Software
from contract.plan.family import faces, family

from ..kind import Planned
from ..programs import READY
from ..scene import Placed, Scene
from .file import NatOptions

TABLE = "vnet_nat"
# beginning of each rule's comment, by which the program recognises vNET's rules in the kernel
MARK = "vnet: "
HERE = Path(__file__).parent
# Chains: name -> hook and priority (nft(8)). `hidden` drops packets before connection tracking restores
# inside addresses. An answer still has the outside address there, so a packet with a hidden address was sent
# to that address, and is dropped.
CHAINS = {
    "hidden": "type filter hook prerouting priority -300",
    "ports": "type nat hook prerouting priority -100",
    "sources": "type nat hook postrouting priority 100",
}


def plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every NAT of the lab, in the order given."""
    for placed in all_of_it:
        options: NatOptions = placed.model.nat
        inside, outside = _sides(scene, placed, options)
        ports = [
            [one.protocol, one.port, scene.address(one.to, placed.node, "IPv4"), one.to_port or one.port]
            for one in options.ports
        ]
        chains = {
            "hidden": _hidden(inside, outside),
            "ports": [
                f'iifname "{outside.name}" ip daddr {outside.address} {protocol} dport {port} counter '
                f'dnat to {to}:{to_port} comment "{MARK}port {port} to {to}"'
                for protocol, port, to, to_port in ports
            ],
            "sources": [
                f'oifname "{outside.name}" ip saddr {card.subnet} counter '
                f'snat to {outside.address} comment "{MARK}from {card.segment}"'
                for card in inside
            ],
        }
        spec = {
            "inside": [card.segment for card in inside],
            "outside": outside.segment,
            "address": outside.address,
            "ports": ports,
        }
        process = _process(placed, _text(chains), sum(map(len, chains.values())))
        yield Planned(Software(placed.name, "server", placed.kind, process, spec=spec))


def _sides(scene: Scene, placed: Placed, options: NatOptions) -> tuple[list[Interface], Interface]:
    every = faces(scene.interfaces[placed.node])
    cards = {card.segment: card for card in every if family(card.address) == "IPv4"}
    return [cards[name] for name in dict.fromkeys(options.inside)], cards[options.outside]


def _hidden(inside: Sequence[Interface], outside: Interface) -> list[str]:
    """Returns the rules that drop packets from outside to an address that the NAT hides."""
    return [
        f'iifname "{outside.name}" ip daddr {card.subnet} counter drop '
        f'comment "{MARK}{card.segment} is hidden"'
        for card in inside
    ]


def _text(chains: dict[str, list[str]]) -> str:
    """Returns the file for `nft -f`, which replaces an earlier table of vNET in one change."""
    lines = [f"table ip {TABLE} {{}}", f"delete table ip {TABLE}", f"table ip {TABLE} {{"]
    for name, rules in chains.items():
        lines += [f"\tchain {name} {{", f"\t\t{CHAINS[name]}; policy accept;"]
        lines += [f"\t\t{rule}" for rule in rules] + ["\t}"]
    return "\n".join([*lines, "}", ""])


def _process(placed: Placed, rules: str, count: int) -> Process:
    options: NatOptions = placed.model.nat
    files = {"rules.nft": rules, "nat.sh": (HERE / "nat.sh").read_text()}
    seconds = {key: getattr(options, key) for key in ("udp_timeout", "tcp_timeout")}
    return Process(
        argv=("sh", f"{placed.name}/nat.sh"),
        env={
            "DIR": placed.name,
            "TABLE": TABLE,
            "MARK": MARK,
            "RULES": str(count),
            **{key.upper(): str(ns // 10**9) for key, ns in seconds.items() if ns is not None},
        },
        files=tuple(File(f"{placed.name}/{path}", content) for path, content in files.items()),
        ready=Probe(log=READY),
    )
