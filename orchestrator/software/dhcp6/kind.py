"""Enters DHCPv6 servers and clients in the registry: their descriptions for readers, ports and programs."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Program, Software

from ..dnsmasq import MEMORY_BYTES, PROGRAM
from ..kind import Bind, Costs, Kind
from .checks import CLIENT, SERVER, check_client, check_server
from .file import Dhcp6, Dhcp6Client
from .planning import plan_clients, plan_servers

_CLIENT_BYTES = 4_000_000
SERVER_PORT = 547  # RFC 8415, section 7.2; a client has its port (546) on its own interface alone


def _words_of_server(software: Software, _flows: Sequence[Flow]) -> str:
    return f"DHCPv6 server of {software.spec['subnet']}, {len(software.spec['clients'])} clients"


KIND = Kind(
    name=SERVER,
    key=SERVER,
    model=Dhcp6,
    what="a DHCPv6 server",
    example="dhcp6: {lease: 10 min}",
    check=check_server,
    plan=plan_servers,
    words=_words_of_server,
    costs=lambda software, _flows: Costs(MEMORY_BYTES, peers=len(software.spec["clients"])),
    in_agent=False,
    endpoint=lambda _model: False,
    binds=lambda _model: (Bind("udp", SERVER_PORT, (SERVER,), "leave one of them out"),),
    programs=(PROGRAM,),
    titles={"Dhcp6Options": "software.NAME.dhcp6: a DHCPv6 server"},
)
CLIENT_KIND = Kind(
    name=CLIENT,
    key=CLIENT,
    model=Dhcp6Client,
    what="a DHCPv6 client",
    example="dhcp6-client: {}",
    check=check_client,
    plan=plan_clients,
    words=lambda software, _flows: f"DHCPv6 client of {software.spec['configures']}",
    costs=lambda _software, _flows: Costs(_CLIENT_BYTES, peers=1),
    in_agent=False,
    endpoint=lambda _model: False,
    programs=(
        Program(
            "dhclient",
            "isc-dhcp-client",
            ("dpkg-query", "-W", "-f", "${Version}", "isc-dhcp-client"),
            "topologies with clients of DHCPv6 fail when their nodes start",
        ),
    ),
    titles={"Client6Options": "software.NAME.dhcp6-client: an address by DHCPv6"},
)
