"""Makes topologies of pairs of a source and a sink with a link between them: one run for every
kind of queue.
"""

from __future__ import annotations

import json
from typing import Any

FLOOD = {"protocol": "udp", "rate": "4 Mbit/s", "size": "1000 B"}
SPARSE = {"size": "200 B", "rate": "50 /s"}
FRAME_NS = 1518 * 8 * 10**9  # divided by a rate in bit/s: the time (ns) that a full frame takes


def topology(name: str, pairs: dict[str, dict[str, Any]], hold: str = "12 s") -> str:
    """Returns a topology; for each pair, `pairs` has its `link` (the keys besides `between`) and the software
    of its `source` and `sink`.
    """
    segments: dict[str, Any] = {}
    nodes: dict[str, Any] = {}
    links: dict[str, Any] = {}
    for number, (pair, wanted) in enumerate(pairs.items(), 1):
        for side, node in (("a", "source"), ("b", "sink")):
            segments[f"{pair}-{side}"] = {"subnet": f"10.{number}.0.0/24"}
            nodes[f"{pair}-{node}"] = {
                "segment": f"{pair}-{side}", "software": wanted[node], **wanted.get("nodes", {}),
            }  # fmt: skip
        links[pair] = {"between": [f"{pair}-a", f"{pair}-b"], **wanted["link"]}
    run = {"hold": hold, "drain": "2 s"}
    return json.dumps({"name": name, "segments": segments, "nodes": nodes, "links": links, "run": run})


def flood_and_sparse(pair: str, link: dict[str, Any]) -> dict[str, Any]:
    """Returns a pair with datagrams at twice the link's rate to port 5201, and few messages to port 9001."""
    return {
        "link": {"both": link},
        "source": {
            "low": {"bulk": {"to": f"{pair}-sink", **FLOOD}},
            "high": {"udp": {"to": f"{pair}-sink", "push": SPARSE}},
        },
        "sink": {"low": {"bulk": {"listen": 5201}}, "high": {"udp": {"listen": 9001}}},
    }


def greedy_and_sparse(pair: str, link: dict[str, Any]) -> dict[str, Any]:
    """Returns a pair with a greedy TCP transfer and few messages beside it."""
    found = flood_and_sparse(pair, link)
    found["source"]["low"] = {"bulk": {"to": f"{pair}-sink"}}
    return found


def greedy(pair: str, link: dict[str, Any], ecn: bool) -> dict[str, Any]:
    """Returns a pair with only a TCP transfer, with or without explicit congestion notification."""
    argv = ["sysctl", "-w", f"net.ipv4.tcp_ecn={int(ecn)}"]
    return {
        "link": {"both": link},
        "source": {
            "ecn": {"command": argv, "expect": "exited"},
            "tcp": {"bulk": {"to": f"{pair}-sink"}},
        },
        "sink": {"tcp": {"bulk": {"listen": 5201}}},
    }


def floods(pair: str, link: dict[str, Any], ports: dict[str, int]) -> dict[str, Any]:
    """Returns a pair with one flood of datagrams to each port."""
    return {
        "link": {"both": link},
        "source": {
            name: {"bulk": {"to": f"{pair}-sink", "port": port, **FLOOD}} for name, port in ports.items()
        },
        "sink": {name: {"bulk": {"listen": port}} for name, port in ports.items()},
    }


def marked(pair: str) -> dict[str, Any]:
    """Returns a pair with messages over UDP and transfers, of which one of each kind has the code
    point EF.
    """
    found = flood_and_sparse(
        pair, {**SLOW, "queue": {"prio": {"high": {"dscp": "EF"}, "rest": {"limit": 50}}}}
    )
    high = {"bulk": {"to": f"{pair}-sink", "port": 5202, "rate": "200 kbit/s", "dscp": 46}}
    found["source"]["high"]["udp"]["dscp"] = "EF"
    found["source"]["transfer"] = high
    found["sink"]["transfer"] = {"bulk": {"listen": 5202}}
    found["source"]["low"]["bulk"]["port"] = 5201
    return found


def tagged(pair: str) -> dict[str, Any]:
    """Returns a pair with echo requests over an interface with 802.1Q tags of priority 6, beside a flood
    without tags.
    """
    found = flood_and_sparse(
        pair, {**SLOW, "queue": {"prio": {"high": {"pcp": [6, 7]}, "rest": {"limit": 50}}}}
    )
    del found["source"]["high"], found["sink"]["high"]
    for node, address in (("source", 1), ("sink", 2)):
        found[node]["tags"] = {
            "command": "ip link add link eth0 name eth0.5 type vlan id 5 egress-qos-map 0:6 && "
            f"ip addr add 192.168.5.{address}/24 dev eth0.5 && ip link set eth0.5 up",
            "expect": "exited",
        }  # fmt: skip
    ping = "sleep 2; exec ping -q -i 0.1 -c 80 192.168.5.2"
    found["source"]["ping"] = {"command": ping, "start": "hold", "expect": "exited"}
    return found


PORTS = {"small": 5001, "large": 5002, "capped": 5003}
HTB = {
    "small": {"port": 5001, "rate": "800 kbit/s"},
    "large": {"port": 5002, "rate": "2400 kbit/s"},
    "capped": {"port": 5003, "rate": "320 kbit/s", "ceil": "320 kbit/s"},
    "rest": {"rate": "80 kbit/s"},
}
RED = {"min": "15 kB", "max": "45 kB", "probability": "10 %"}
SLOW = {"rate": "2 Mbit/s", "delay": "5 ms"}
FAST = {"rate": "5 Mbit/s", "delay": "5 ms"}
PRIO = {"high": {"port": 9001, "limit": 20}, "rest": {"limit": 50}}
ALL = {
    "prio": flood_and_sparse("prio", {**SLOW, "queue": {"prio": PRIO}}),
    "fifo": flood_and_sparse("fifo", {**SLOW, "limit": 50}),
    "htb": floods("htb", {"rate": "4 Mbit/s", "queue": {"htb": HTB}}, PORTS),
    "marks": greedy("marks", {**FAST, "queue": {"red": {**RED, "ecn": True}}}, ecn=True),
    "drops": greedy("drops", {**FAST, "queue": {"red": RED}}, ecn=False),
    "fair": greedy_and_sparse("fair", {**FAST, "queue": {"fq_codel": {}}}),
    "cake": greedy_and_sparse("cake", {**FAST, "queue": {"cake": {}}}),
    "deep": greedy_and_sparse("deep", {**FAST, "limit": 1000}),
    "marked": marked("marked"),
    "tagged": tagged("tagged"),
}
