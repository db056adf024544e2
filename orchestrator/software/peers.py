"""Defines and plans roles of the agent that exchange messages with other nodes: one side listens, the other
names its peers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import Field

from contract.plan import Delivery, Guarantee, Session
from contract.plan.family import Family, has_ipv6

from ..language.dscp import Dscp, Pcp, marks
from ..language.scalars import Base, Port, Targets
from ..language.source import Path
from .checking import Checks, Here, joined
from .scene import Placed, Scene

FAMILY: dict[str, Family] = {"ipv4": "IPv4", "ipv6": "IPv6"}
PROTOCOL = "vnet"  # name of the agent's own protocol in the tables that vnet-reduce makes from captures


class Peer(Base):
    """The keys of one side of an exchange: a side that receives has `listen`, a side that sends has `to`."""

    listen: Port | None = Field(None, description="Port of the side that receives.")
    to: Targets | None = Field(
        None, description="Receivers of the sending side: a node or group that listens, or a list of them."
    )
    port: Port | None = Field(
        None, description="Port of the receivers; by default that of the software there."
    )
    family: Literal["ipv4", "ipv6"] | None = Field(
        None,
        description="Family of the receivers' addresses, where both sides have both (dual stack); by default "
        "that of the first subnet that both have.",
    )


@dataclass(frozen=True, slots=True)
class Target:
    """A receiver of a side's messages: its endpoint, address and port."""

    endpoint: str
    address: str
    port: int


class MarkedPeer(Peer):
    """The keys of a side whose packets can carry a DSCP and a PCP."""

    dscp: Dscp | None = Field(
        None, description="DSCP of the packets that this side sends: EF, AF41, CS6 or a number (RFC 2474)."
    )
    pcp: Pcp | None = Field(
        None,
        description="Priority (IEEE 802.1Q, 0 to 6) in the tags of the frames that this side sends; its node "
        "has a `vlan`. Without it 0.",
    )


def options_of(model: Any, kind: str) -> Any:
    """Returns the options below the kind's key, which is the kind's name; None for software of another
    kind.
    """
    return getattr(model, kind, None)


def check_peer(report: Checks, here: Here, peer: Peer, kind: str, sends: Sequence[str]) -> None:
    """Reports a side without exactly one of `listen` and `to`; a listening side with keys of the sender; a
    sending side without any of the keys `sends`; and wrong receivers (the node itself, a node that does not
    listen, an ambiguous or unreachable one). If `sends` is empty, a sending side needs no such key.
    """
    path = (*here.path, kind)
    said = [key for key in sends if getattr(peer, key) is not None]
    listed = ", ".join(f"`{key}:`" for key in sends)
    if (peer.listen is None) == (peer.to is None):
        rule = "has exactly one of the keys listen and to"
        report.add(path, None, rule, "write `listen: PORT` where it receives, `to: NODE` where it sends")
    elif peer.to is None:
        for key in [*said, *(key for key in ("port", "family") if getattr(peer, key) is not None)]:
            rule = "does not belong to the side that listens"
            report.add((*path, key), None, rule, "write it where `to` is")
    elif sends and not said:
        report.add(path, None, "says to whom, but not what it sends", f"write {listed}")
    for index, name in enumerate(peer.to or ()):
        where = (*path, "to", index) if len(peer.to or ()) > 1 else (*path, "to")
        _target(report, here, peer, kind, name, where)


def _target(report: Checks, here: Here, peer: Peer, kind: str, name: str, path: Path) -> None:
    for node in report.machines(path, name):
        if node in here.nodes:
            report.add(path, name, "a flow to itself", "name other nodes than those that send")
            return
        found = [one for model in report.programs(node).values() if (one := options_of(model, kind))]
        ports = [one.listen for one in found if one.listen is not None]
        if peer.port is not None and peer.port not in ports:
            rule = f"no {kind} software of {node} listens on port {peer.port}"
            report.add(
                path, name, rule, f"write `software: {{server: {{{kind}: {{listen: {peer.port}}}}}}}` there"
            )
        elif not ports:
            rule = f"no {kind} software of {node} listens"
            report.add(path, name, rule, f"write `software: {{server: {{{kind}: {{listen: 9000}}}}}}` there")
        elif peer.port is None and len(ports) > 1:
            report.add(path, name, f"more than one {kind} software of {node} listens", "write `port:`")
        elif joined(report, here, path, name, node) and _of_family(report, here, peer, kind, node):
            continue
        return


def _of_family(report: Checks, here: Here, peer: Peer, kind: str, node: str) -> bool:
    """Returns False, and reports `family`, if one of the two sides has no address of this family."""
    if peer.family is None:
        return True
    for one in (*here.nodes, node):
        has = report.families(one)
        if has and FAMILY[peer.family] not in has:
            rule = f"{one} has no address of it"
            remedy = f"give its segment a subnet of {FAMILY[peer.family]} beside the other, or leave it out"
            report.add((*here.path, kind, "family"), peer.family, rule, remedy)
            return False
    return True


def targets(scene: Scene, placed: Placed) -> tuple[Target, ...]:
    """Returns the receivers of `placed`, each once; none for a side that listens."""
    peer: Peer = options_of(placed.model, placed.kind)
    found: dict[str, Target] = {}
    for node in (node for name in peer.to or () for node in scene.machines(name)):
        for other in scene.at(node, placed.kind):
            port = options_of(other.model, placed.kind).listen
            if port is not None and peer.port in (None, port):
                address = scene.address(node, placed.node, FAMILY[peer.family] if peer.family else None)
                found[other.endpoint] = Target(other.endpoint, address, port)
    return tuple(found.values())


def set_name(placed: Placed) -> str:
    """Returns the name of the set of receivers of `placed`: the names in `to`, the kind, and `port` if the
    file states it.
    """
    peer: Peer = options_of(placed.model, placed.kind)
    port = "" if peer.port is None else f" port {peer.port}"
    return f"{', '.join(peer.to or ())} by {placed.kind}{port}"


def deliveries(placed: Placed, to: Sequence[Target], guarantee: Guarantee) -> tuple[Delivery, ...]:
    """Returns the set of receivers of `placed` with its delivery guarantee; none for a side that listens."""
    return (Delivery(set_name(placed), guarantee),) if to else ()


def session(scene: Scene, placed: Placed, patience_ns: int | None = None) -> Session:
    """Returns the session, which lasts to the end. It begins at the start for a side that listens, else at
    its turn in the ramp, with `patience_ns`.
    """
    if options_of(placed.model, placed.kind).listen is not None:
        return Session(placed.endpoint, 0, scene.end_ns, listens=True)
    return Session(placed.endpoint, placed.connect_ns, scene.end_ns, patience_ns=patience_ns)


def spec(scene: Scene, placed: Placed, to: Sequence[Target]) -> dict[str, Any]:
    """Returns a part of the agent's settings: the port to listen on, the receivers, the packet marks, and
    whether the node has IPv6.
    """
    options = options_of(placed.model, placed.kind)
    found = {"listen": options.listen, "to": [asdict(target) for target in to], **marks(options)}
    return found | ({"ipv6": True} if has_ipv6(scene.interfaces[placed.node]) else {})


def ports(placed: Placed, to: Sequence[Target]) -> dict[str, tuple[int, ...]]:
    """Returns the ports of the agent's own protocol that this software uses."""
    listen = options_of(placed.model, placed.kind).listen
    known = (listen,) if listen is not None else (target.port for target in to)
    return {PROTOCOL: tuple(sorted(set(known)))}


def role(placed: Placed) -> Any:
    """Returns the software's group in tables: "server" if it listens, else "client"."""
    return "client" if options_of(placed.model, placed.kind).listen is None else "server"
