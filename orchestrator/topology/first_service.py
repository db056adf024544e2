"""Writes the topology of `vnet new --service`: a service of one's own, HTTP clients, a bad network between
them, and expectations.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from .first import MOST_CLIENTS, network_words

CLIENT = Path(__file__).parent / "programs" / "http_client.py"
NETWORK = "lte"  # the default network
PORT = 80


@dataclass(frozen=True)
class Service:
    """The user's program and the answers to the questions of `vnet new --service`."""

    name: str
    command: str
    port: int
    clients: int
    network: str  # name of a profile, or a delay


def service_topology(asked: Service) -> str:
    """Returns the text of the topology file, unchecked."""
    network = network_words(asked.network)
    lines = [
        f"# vnet run {asked.name}.yaml --time virtual; vnet explain KEY says what a key means.",
        f"name: {asked.name}",
        "description: A service of one's own, and clients whose network is bad and for five seconds worse.",
        "",
        "parameters:  # changed by -p clients=20",
        f"  clients: {{type: int, default: {asked.clients}, min: 1, max: {MOST_CLIENTS}}}",
        '  path: {type: text, default: "/", help: that clients request}',
        '  interval: {type: text, default: "0.05", help: seconds between the requests of a client}',
        '  load: {type: text, default: "30", help: seconds for which clients send requests}',
        "  hold: {type: duration, default: 42 s, help: ten seconds more than load}",
        "",
        "segments:  # one subnet: the link below joins them as a bridge",
        "  field: {subnet: 10.50.0.0/16}",
        "  centre: {subnet: 10.50.0.0/16}",
        "",
        "nodes:",
        "  server:",
        "    segment: centre",
        "    mounts: {copy: [/etc, /var, /run]}  # writable for the service, dropped at the end",
        "    software:",
        "      service:",
        f"        command: {json.dumps(asked.command, ensure_ascii=False)}",
        "        role: server",
        f"        ready: {{tcp: {asked.port}, within: 30 s}}",
        "",
        "groups:",
        "  client:",
        '    count: "${clients}"',
        "    segment: field",
        "    software:",
        "      load:",
        f"        command: {_client_command(asked.port)}",
        "        role: client",
        "        start: hold",
        "        at_end: exited",
        "        figures: {from: log, format: access}  # program_latency_p99 and others; yours: wrk, k6, ...",
        "        files:",
        "          http_client.py: |",
        *_indented(CLIENT.read_text(encoding="utf-8"), 12),
        "",
        "links:  # what the network does to packets, one way; vnet profiles lists named ones",
        f"  way: {{between: [field, centre], both: {{{network}}}}}",
        "",
        "captures:",
        "  server: {at: node server}",
        "",
        "timeline:  # an event replaces the whole impairment, so it names the network again",
        f"  - {{at: hold + 5 s, impair: way, both: {{{network}, loss: 5 %}}, for: 5 s, label: worse}}",
        "",
        "expect:  # of each client; change the bounds to yours",
        '  - "program_latency_p99 < 3 s"',
        '  - "program_status_5xx < 1"  # 504: no answer came',
        "",
        "run:",
        "  connect_interval: 100 ms",
        '  hold: "${hold}"',
        "  drain: 5 s",
        "  on_node_failure: continue  # other figures stay if the service never listens, or crashes",
    ]
    return "\n".join(lines) + "\n"


def _client_command(port: int) -> str:
    url = "http://{{ addresses.server }}:" + str(port) + "{{ parameters.path }}"
    return json.dumps(
        f'exec python3 -u http_client.py "{url}" {{{{ parameters.interval }}}} {{{{ parameters.load }}}}'
    )


def _indented(text: str, by: int) -> list[str]:
    return [" " * by + line if line else "" for line in text.splitlines()]
