"""Lists mistakes in labs over several hosts: hosts, placement, constraints."""

from __future__ import annotations

from .base import Case

NODES = "nodes:\n  broker:\n    segment: office\n"
GROUPS = "groups:\n  client:\n    count: ${clients}\n    segment: field\n"
LINK = "  wan:\n    between: [field, office]\n"
TWO = "hosts:\n  lab1: {machine: local}\n  lab2: {machine: ssh://root@lab2}\n"
AT = 8  # line of `nodes:` in BASE


def _hosts(new: str) -> str:
    return f"hosts:\n{new}nodes:\n  broker:\n    segment: office\n"


def _broker(key: str) -> str:
    return f"{TWO}{NODES}    {key}\n"


def _client(key: str) -> str:
    return f"{TWO}{GROUPS}    {key}\n"


CASES = [
    Case(
        "host not in the inventory", NODES, f"hosts: [here, lab77]\n{NODES}", "hosts.lab77", "is not in", AT
    ),
    Case("host twice", NODES, f"hosts: [here, here]\n{NODES}", "hosts", "names a host twice", AT),
    Case("hosts a number", NODES, f"hosts: 3\n{NODES}", "hosts", "must be a mapping", AT),
    Case("host's name", NODES, _hosts("  -x: {machine: local}\n"), "hosts.-x", "does not match", AT + 1),
    Case(
        "host called lab",
        NODES,
        _hosts("  lab: {machine: local}\n"),
        "hosts.lab",
        "is what a run's tables call the lab's own kernel",
        AT + 1,
    ),
    Case(
        "host by http",
        NODES,
        _hosts("  a: {machine: http://a}\n"),
        "hosts.a.machine",
        "is not ssh://[USER@]HOST[:PORT][/KERNEL]",
        AT + 1,
    ),
    Case(
        "host's cores",
        NODES,
        _hosts("  a: {machine: local, cores: many}\n"),
        "hosts.a.cores",
        "is no number of cores",
        AT + 1,
    ),
    Case(
        "host's clock in cores",
        NODES,
        _hosts("  a: {machine: local, cpu_clock: 2 cores}\n"),
        "hosts.a.cpu_clock",
        "is no clock",
        AT + 1,
    ),
    Case(
        "host's memory without unit",
        NODES,
        _hosts("  a: {machine: local, memory: 16}\n"),
        "hosts.a.memory",
        "has no unit",
        AT + 1,
    ),
    Case(
        "more ports than a bridge has",
        NODES,
        _hosts("  a: {machine: local, bridge_ports: 1024}\n"),
        "hosts.a.bridge_ports",
        "must be at most 1023",
        AT + 1,
    ),
    Case(
        "one machine as two hosts",
        NODES,
        _hosts("  a: {machine: local}\n  b: {machine: local}\n"),
        "hosts.b.machine",
        "is that of host a already",
        AT + 2,
    ),
    Case("host without hosts", NODES, f"{NODES}    host: a\n", "nodes.broker.host", "no hosts to choose", 11),
    Case("apart without hosts", NODES, f"{NODES}    apart: reader\n", "nodes.broker.apart", "no hosts", 11),
    Case("unknown host", NODES, _broker("host: lab3"), "nodes.broker.host", "no host is called that", 14),
    Case("near nobody", NODES, _broker("near: writer"), "nodes.broker.near", "no node is called that", 14),
    Case("near itself", NODES, _broker("near: broker"), "nodes.broker.near", "is the node itself", 14),
    Case("near a group", NODES, _broker("near: client"), "nodes.broker.near", "is a group", 14),
    Case(
        "apart of one node",
        NODES,
        _broker("apart: true"),
        "nodes.broker.apart",
        "is of a group's members",
        14,
    ),
    Case(
        "apart from nobody",
        NODES,
        _broker("apart: [nn]"),
        "nodes.broker.apart",
        "no node or group is called",
        14,
    ),
    Case("apart a number", NODES, _broker("apart: 3"), "nodes.broker.apart", "is neither true nor names", 14),
    Case(
        "apart from itself",
        GROUPS,
        _client("apart: client2"),
        "groups.client.apart",
        "is apart from itself",
        25,
    ),
    Case(
        "more apart than hosts",
        GROUPS,
        _client("apart: true"),
        "groups.client.apart",
        "needs 3 hosts, and",
        25,
    ),
    Case(
        "near and apart",
        NODES,
        _broker("near: reader\n    apart: reader"),
        "nodes.broker.apart",
        "broker and reader stand on one host (nodes.broker.near)",
        15,
    ),
    Case(
        "near and a host without hosts",
        "  reader:\n    segment: office\n",
        "  reader:\n    near: broker\n    host: lab1\n    segment: office\n",
        "nodes.reader.host",
        "no hosts to choose",
        15,
    ),
    Case(
        "a NIC that no host has",
        NODES,
        _broker("nic: enp9s0"),
        "nodes.broker.nic",
        "none says that it has",
        14,
    ),
    Case(
        "underlay's MTU",
        NODES,
        f"underlay: {{mtu: 100}}\n{NODES}",
        "underlay.mtu",
        "must be at least 576",
        AT,
    ),
    Case(
        "oversize",
        NODES,
        f"underlay: {{oversize: ignore}}\n{NODES}",
        "underlay.oversize",
        "is not one of the values allowed",
        AT,
    ),
]
