"""Enters DHCP servers and clients in the registry: their descriptions for readers, ports and programs."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Program, Software

from ..dnsmasq import MEMORY_BYTES, PROGRAM
from ..kind import Bind, Costs, Kind
from .checks import CLIENT, SERVER, check_client, check_server
from .file import Dhcp, DhcpClient
from .planning import plan_clients, plan_servers

_CLIENT_BYTES = 1_000_000
SERVER_PORT = 67  # RFC 2131; a client has its port (68) on its own interface alone


def _words_of_server(software: Software, _flows: Sequence[Flow]) -> str:
    spec = software.spec
    others = f", {spec['range'][0]} to {spec['range'][1]} for others" if spec["range"] else ""
    return f"DHCP server of {spec['subnet']}, {len(spec['clients'])} clients{others}"


KIND = Kind(
    name=SERVER,
    key=SERVER,
    model=Dhcp,
    what="a DHCP server",
    example="dhcp: {lease: 10 min}",
    check=check_server,
    plan=plan_servers,
    words=_words_of_server,
    costs=lambda software, _flows: Costs(MEMORY_BYTES, peers=len(software.spec["clients"])),
    in_agent=False,
    endpoint=lambda _model: False,
    binds=lambda _model: (Bind("udp", SERVER_PORT, (SERVER,), "leave one of them out"),),
    programs=(PROGRAM,),
    titles={"DhcpOptions": "software.NAME.dhcp: a DHCP server", "Range": "dhcp's range"},
)
CLIENT_KIND = Kind(
    name=CLIENT,
    key=CLIENT,
    model=DhcpClient,
    what="a DHCP client",
    example="dhcp-client: {}",
    check=check_client,
    plan=plan_clients,
    words=lambda software, _flows: f"DHCP client of {software.spec['configures']}",
    costs=lambda _software, _flows: Costs(_CLIENT_BYTES, peers=1),
    in_agent=False,
    endpoint=lambda _model: False,
    programs=(
        Program(
            "udhcpc",
            "udhcpc",
            ("dpkg-query", "-W", "-f", "${Version}", "udhcpc"),
            "topologies with clients of DHCP fail when their nodes start",
        ),
    ),
    titles={"ClientOptions": "software.NAME.dhcp-client: an address by DHCP"},
)
