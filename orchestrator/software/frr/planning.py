"""Plans the routers: the configuration of each, the daemons that it needs, and when it is ready."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.plan import File, Probe, Process, Software
from contract.plan.family import EVERYWHERE, FAMILIES, Family, faces, family

from ...language.template_rules import TemplateFaultError
from ...language.templates import render
from ..kind import Planned, SoftwareError
from ..programs import template
from ..scene import Placed, Scene
from .domain import Domain, Port, Speaker
from .rules import insist

MOST_WAYS = 64
READY = "vnet: routes are there"  # routers.sh prints this line
HERE = Path(__file__).parent
# Name of a protocol in `router PROTOCOL` of a configuration -> its daemon.
DAEMONS = {
    "ospf": "ospfd", "ospf6": "ospf6d", "bgp": "bgpd", "rip": "ripd", "ripng": "ripngd", "isis": "isisd",
    "eigrp": "eigrpd", "babel": "babeld",
}  # fmt: skip
# Address family -> the version of OSPF for it: 2, and 3 (RFC 5340).
VERSIONS: dict[Family, str] = {"IPv4": "ospf", "IPv6": "ospf6"}
_PROTOCOL = re.compile(r"^router ([a-z0-9]+)", re.MULTILINE)
_STATIC = re.compile(r"^ ?ip(v6)? route ", re.MULTILINE)  # static routes, which a separate daemon reads


@dataclass(frozen=True)
class Peer:
    """A BGP neighbour; `source` is the router's own address towards a neighbour that is not on a shared
    subnet.
    """

    node: str
    address: str
    as_number: int
    source: str | None = None

    @property
    def family(self) -> Family:
        return family(self.address)


def plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every router of the lab; raises SoftwareError if routers contradict each other or a template
    fails.
    """
    places = {node: place for place, node in enumerate(scene.interfaces, 1)}
    speakers = [
        Speaker(placed, tuple(faces(scene.interfaces[placed.node])), places[placed.node])
        for placed in all_of_it
    ]
    domain = Domain(scene, [s for s in speakers if s.wanted.config is None])
    insist(domain)
    for speaker in speakers:
        own = speaker.wanted.config is not None
        yield Planned(_theirs(scene, speaker) if own else _ours(domain, speaker))


def _theirs(scene: Scene, speaker: Speaker) -> Software:
    try:
        text = render(speaker.wanted.config or "", scene.values(speaker.node))
    except TemplateFaultError as error:
        rule = f"a template fails on node {speaker.node} ({error})"
        raise SoftwareError(speaker.node, rule, "correct the template") from None
    daemons = [DAEMONS[p] for p in dict.fromkeys(_PROTOCOL.findall(text)) if p in DAEMONS]
    daemons += ["staticd"] if _STATIC.search(text) else []
    subnets = sorted({one for some in scene.subnets.values() for one in some})
    return _software(speaker, text, daemons, subnets, {})


def _ours(domain: Domain, speaker: Speaker) -> Software:
    wanted = speaker.wanted
    text = template(HERE / "frr.conf.j2").render(
        node=speaker.node,
        router_id=speaker.router_id,
        ospf=wanted.ospf,
        bgp=wanted.bgp,
        paths=MOST_WAYS if wanted.ecmp else 1,
        peers=_peers(domain, speaker),
        versions=[VERSIONS[kind] for kind in _families(speaker)],
        ports=[_interface(port) for port in domain.ospf_ports(speaker)] if wanted.ospf else [],
    )
    daemons = [DAEMONS[VERSIONS[kind]] for kind in _families(speaker)] if wanted.ospf else []
    daemons += [DAEMONS["bgp"]] if wanted.bgp else []
    costs = domain.costs(speaker) if wanted.ospf else {}
    return _software(speaker, text, daemons, sorted(domain.announced(speaker)), costs)


def _software(
    speaker: Speaker, text: str, daemons: Sequence[str], subnets: Sequence[str], costs: dict[str, int]
) -> Software:
    name, wanted = speaker.placed.name, speaker.wanted
    if wanted.ready is not None:
        subnets, costs = ["default" if to in EVERYWHERE.values() else to for to in wanted.ready], {}
    files = {
        "frr.conf": text,
        "routes": "".join(f"{subnet}\n" for subnet in subnets),
        **{
            f"costs{version.removeprefix('ospf')}": _costs_text(costs, kind)
            for kind, version in VERSIONS.items()
        },
        "routers.sh": (HERE / "routers.sh").read_text(),
    }
    process = Process(
        argv=("sh", f"{name}/routers.sh"),
        env={"DIR": name, "DAEMONS": " ".join(("zebra", *daemons))},
        files=tuple(File(f"{name}/{path}", content) for path, content in files.items()),
        ready=Probe(log=READY, deadline_ns=wanted.ready_within),
        restart=wanted.restart,
    )
    return Software(name, "router", speaker.placed.kind, process)


def _families(speaker: Speaker) -> list[Family]:
    return [kind for kind in FAMILIES if speaker.first(kind) is not None]


def _costs_text(costs: dict[str, int], kind: Family) -> str:
    wanted = sorted(item for item in costs.items() if family(item[0]) == kind)
    return "".join(f"{subnet} [{cost}]\n" for subnet, cost in wanted)


def _interface(port: Port) -> dict[str, Any]:
    """Returns the OSPF settings of an interface: point-to-point with one neighbour on the subnet, so that
    no designated router is elected; else broadcast; no type without neighbours.
    """
    network = None
    if port.others:
        network = "point-to-point" if port.wire or len(port.others) == 1 else "broadcast"
    return {
        "name": port.card.name,
        "protocol": "ip ospf" if family(port.subnet) == "IPv4" else "ipv6 ospf6",
        "segment": port.card.segment,
        "cost": port.cost,
        "network": network,
    }


def _peers(domain: Domain, speaker: Speaker) -> list[Peer]:
    """Returns the BGP neighbours of a router, by address family: each address of routers of other ASs on
    shared subnets, and each router of its own AS once; none without BGP.
    """
    if speaker.wanted.bgp is None:
        return []
    ours, found = speaker.autonomous_system, list[Peer]()
    near: set[tuple[str, Family]] = set()
    for port in domain.bgp_ports(speaker):
        for other, card in port.others:
            theirs = other.autonomous_system
            assert theirs is not None
            if theirs != ours or (other.node, family(card.address)) not in near:
                found.append(Peer(other.node, card.address, theirs))
            near.add((other.node, family(card.address)))
    for fellow in domain.fellows(speaker):
        for kind in FAMILIES:
            address, source = fellow.first(kind), speaker.first(kind)
            if (fellow.node, kind) not in near and address is not None and source is not None:
                assert ours is not None
                found.append(Peer(fellow.node, address, ours, source))
    return found
