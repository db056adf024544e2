"""The counters that are sampled once a second: of the nodes and links that the lab has now."""

from __future__ import annotations

from typing import Any

from orchestrator.lab.clock import SECOND
from orchestrator.lab.lab import Lab
from orchestrator.lab.probes import directions


def start(lab: Lab) -> None:
    """Begin, or go on with other nodes and links in the same files."""
    lab.sampling = True
    lab.driver.call(
        "sample", interval_ns=SECOND, dir=str(lab.run_dir / "raw"), nodes=_nodes(lab), links=_links(lab)
    )


def renew(lab: Lab) -> None:
    """After nodes came or went, where samples are taken at all."""
    if lab.sampling:
        start(lab)


def _nodes(lab: Lab) -> list[dict[str, Any]]:
    return [
        {
            "node": n.name,
            "ports": [i.port for i in n.interfaces if i.port],  # a NIC of the machine has none
            **lab.driver.counters(n),
        }
        for n in lab.nodes.values()
    ]


def _links(lab: Lab) -> list[dict[str, Any]]:
    return [
        {"link": name, "direction": side, "netns": d.netns, "device": d.device}
        for name, side, d in directions(list(lab.links.values()))
    ]
