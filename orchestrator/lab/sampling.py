"""The counters that are sampled once a second: of the nodes and links that the lab has now."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator import queueing
from orchestrator.lab.clock import SECOND
from orchestrator.lab.lab import Lab
from orchestrator.lab.operations import Sample, SampledLink, SampledNode
from orchestrator.lab.probes import BOTH, directions
from orchestrator.model import Direction


def start(lab: Lab) -> None:
    """Begin, or go on with other nodes and links in the same files."""
    lab.sampling = True
    lab.driver.call(Sample(SECOND, str(lab.run_dir / "raw"), _nodes(lab), _links(lab)))


def renew(lab: Lab) -> None:
    """After nodes came or went, where samples are taken at all."""
    if lab.sampling:
        start(lab)


def _nodes(lab: Lab) -> list[SampledNode]:
    return [
        {
            "node": n.name,
            "ports": [i.port for i in n.interfaces if i.port],  # a NIC of the machine has none
            **lab.driver.counters(n),
        }
        for n in lab.nodes.values()
    ]


def _links(lab: Lab) -> list[SampledLink]:
    return [
        {
            "link": name, "direction": side, "netns": d.netns, "device": device,
            "classes": [
                {"class": part.name, "handle": part.number, "tin": part.tin}
                for part in (queueing.parts(lab.impairments[name, "forward" if side == BOTH else side])
                             if device == d.carrier else ())
            ],
        }
        for name, side, d, device in _devices(lab)
    ]  # fmt: skip


def _devices(lab: Lab) -> Iterator[tuple[str, str, Direction, str]]:
    """Of half duplex each end by itself, and what carries both; of a medium, with its many ends, that."""
    for name, side, d in directions(list(lab.links.values())):
        if lab.link(name).kind != "medium":
            yield name, side, d, d.device
        if d.shared is not None and side == "reverse":
            yield name, BOTH, d, d.shared
