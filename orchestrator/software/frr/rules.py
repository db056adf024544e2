"""Checks rules over several routers: distinct router ids, equal OSPF timers of neighbours, and an AS whose
routers are all neighbours or have OSPF.
"""

from __future__ import annotations

from ...language.units import text_ns
from ..kind import SoftwareError
from .domain import Domain, Speaker


def insist(domain: Domain) -> None:
    """Raises SoftwareError for the first rule that the lab's routers break: two routers with the same router
    id, OSPF neighbours with different timers, or a BGP router without OSPF that is not a neighbour of every
    router of its AS.
    """
    taken: dict[str, str] = {}
    for speaker in domain.speakers:
        other = taken.setdefault(speaker.router_id, speaker.node)
        if other != speaker.node:
            rule = f"{speaker.node} has the router id {speaker.router_id}, as {other} has"
            raise SoftwareError(speaker.node, rule, "write another `router_id:`")
        if speaker.wanted.ospf is not None:
            _timers(domain, speaker)
        if speaker.wanted.bgp is not None and speaker.wanted.ospf is None:
            _mesh(domain, speaker)


def _timers(domain: Domain, speaker: Speaker) -> None:
    ours = speaker.wanted.ospf
    assert ours is not None
    for port in domain.ospf_ports(speaker):
        for other, _ in port.others:
            theirs = other.wanted.ospf
            assert theirs is not None
            for key in ("hello", "dead"):
                a, b = getattr(ours, key), getattr(theirs, key)
                if a != b:
                    rule = (
                        f"ospf.{key} of {speaker.node} is {text_ns(a)}, that of its neighbour {other.node} "
                        f"{text_ns(b)}: they would never be neighbours (RFC 2328, 10.5)"
                    )
                    raise SoftwareError(speaker.node, rule, "write the same at both")


def _mesh(domain: Domain, speaker: Speaker) -> None:
    """Raises SoftwareError unless the router shares a subnet with every router of its AS. iBGP does not pass
    routes on, so all routers of an AS must be neighbours.
    """
    near = {other.node for port in domain.bgp_ports(speaker) for other, _ in port.others}
    for fellow in domain.fellows(speaker):
        if fellow.node not in near:
            rule = f"{speaker.node} is no neighbour of {fellow.node}, of the same AS, and has no way to it"
            remedy = "write `ospf: {}` at the routers of the AS, or another AS"
            raise SoftwareError(speaker.node, rule, remedy)
