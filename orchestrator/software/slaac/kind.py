"""Enters routers that advertise and hosts that configure themselves in the registry."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Software

from ..dnsmasq import MEMORY_BYTES, PROGRAM
from ..kind import Costs, Kind
from .checks import HOST, ROUTER, check_host, check_router
from .file import Advertise, Slaac
from .planning import plan_hosts, plan_routers

_HOST_BYTES = 1_000_000


def _words_of_router(software: Software, _flows: Sequence[Flow]) -> str:
    return f"advertises {software.spec['subnet']}"


KIND = Kind(
    name=ROUTER,
    key=ROUTER,
    model=Advertise,
    what="a router that advertises its prefix",
    example="advertise: {}",
    check=check_router,
    plan=plan_routers,
    words=_words_of_router,
    costs=lambda _software, _flows: Costs(MEMORY_BYTES),
    in_agent=False,
    endpoint=lambda _model: False,
    programs=(PROGRAM,),
    titles={"AdvertiseOptions": "software.NAME.advertise: router advertisements"},
)
HOST_KIND = Kind(
    name=HOST,
    key=HOST,
    model=Slaac,
    what="a host that configures itself",
    example="slaac: {}",
    check=check_host,
    plan=plan_hosts,
    words=lambda software, _flows: f"configures {software.spec['configures']} itself (SLAAC)",
    costs=lambda _software, _flows: Costs(_HOST_BYTES),
    in_agent=False,
    endpoint=lambda _model: False,
    titles={"SlaacOptions": "software.NAME.slaac: an address by autoconfiguration"},
)
