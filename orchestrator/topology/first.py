"""Writes the first topology for `vnet new`: clients, a server, and the network between them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import profiles

# Kind of traffic: its description, the server's software, the client's software.
TRAFFIC = {
    "request": (
        "each client asks ten times a second, the server answers; every message is accounted for",
        "answers: {udp: {listen: 9000}}",
        "asks: {udp: {to: server, "
        "request: {size: 100 B, reply: 400 B, rate: 10 /s, rate_of: client, deadline: 500 ms}}}",
    ),
    "transfer": (
        "each client sends as much as TCP takes",
        "takes: {bulk: {listen: 5201}}",
        "sends: {bulk: {to: server}}",
    ),
    "ping": (
        "each client runs ping, a command like any other",
        "",
        'ping: {command: "ping -n -i 0.5 {{ addresses.server }}", start: ramp}',
    ),
}
MOST_CLIENTS = 500
PLAIN = "20 ms"  # the default network: a delay in each direction


@dataclass(frozen=True)
class First:
    """The user's answers to the four questions of `vnet new`."""

    name: str
    traffic: str
    clients: int
    network: str  # name of a profile, or a delay


def network_words(network: str) -> str:
    """Returns the impairment's text in the file for a profile's name or a delay."""
    known = network in profiles.names(Path())
    return f"profile: {network}" if known else f"delay: {network}"


def first_topology(asked: First) -> str:
    """Composes the topology file of `vnet new` from the user's answers and returns its text; does not check
    it.
    """
    what, server, client = TRAFFIC[asked.traffic]
    lines = [
        f"# vnet run {asked.name}.yaml; vnet explain KEY says what a key means.",
        f"name: {asked.name}",
        f"description: Clients and a server; {what}.",
        "",
        "parameters:  # changed by -p clients=20",
        f"  clients: {{type: int, default: {asked.clients}, min: 1, max: {MOST_CLIENTS}}}",
        "  hold: {type: duration, default: 20 s, min: 1 s, help: how long the load lasts}",
        "",
        "segments:  # one subnet: the link below joins them as a bridge",
        "  field: {subnet: 10.50.0.0/16}",
        "  centre: {subnet: 10.50.0.0/16}",
        "",
        "nodes:",
        f"  server: {{segment: centre{f', software: {{{server}}}' if server else ''}}}",
        "",
        "groups:",
        "  client:",
        '    count: "${clients}"',
        "    segment: field",
        "    software:",
        f"      {client}",
        "",
        "links:  # what the network does to packets, one way; vnet profiles lists named ones",
        f"  way: {{between: [field, centre], both: {{{network_words(asked.network)}}}}}",
        "",
        "captures:",
        "  server: {at: node server}",
        "",
        'run: {connect_interval: 100 ms, hold: "${hold}", drain: 5 s}',
    ]
    return "\n".join(lines) + "\n"
