"""Starts and stops the sampling of counters, once a second, for the nodes and links that the lab has now."""

from __future__ import annotations

from collections.abc import Iterator

from contract.plan import Direction
from orchestrator import queueing
from orchestrator.lab.clock import SECOND
from orchestrator.lab.lab import Lab
from orchestrator.lab.operations import Sample, SampledLink, SampledNode
from orchestrator.lab.probes import BOTH, directions

NEVER_NS = 10**9 * SECOND  # interval (31 years) with which a sampler takes no more samples


def start(lab: Lab) -> None:
    """Starts a scenario's sampling, or continues with other nodes and links in the same files."""
    lab.sampling = True
    _sample(lab)


def look(lab: Lab) -> bool:
    """Starts samples for a client if the lab serves clients and takes no samples yet; returns whether samples
    are taken now.
    """
    if lab.serving and not lab.sampling and not lab.watched:
        lab.watched = True
        _sample(lab)
    return lab.sampling or lab.watched


def look_away(lab: Lab) -> None:
    """Ends the samples that `look` started, without waiting for the answer; those of a scenario continue."""
    if lab.watched:
        lab.watched = False
        lab.driver.submit(Sample(NEVER_NS, str(lab.run_dir / "raw"), [], []), lambda _: None)


def renew(lab: Lab) -> None:
    """Updates the sampled nodes and links after a change, if samples are taken."""
    if lab.sampling or lab.watched:
        _sample(lab)


def _sample(lab: Lab) -> None:
    lab.driver.call(Sample(SECOND, str(lab.run_dir / "raw"), _nodes(lab), _links(lab)))


def _nodes(lab: Lab) -> list[SampledNode]:
    return [
        {
            "node": n.name,
            "ports": [i.port for i in n.interfaces if i.port],
            # Devices without an end in the core: wires to other nodes, and NICs of the machine. Only a VM
            # itself can read its NIC.
            "own": [i.device for i in n.interfaces if not i.port and n.vm is None],
            "netns": n.netns,
            **lab.driver.counters(n),
        }
        for n in lab.nodes.values()
    ]


def _links(lab: Lab) -> list[SampledLink]:
    return [
        {
            "link": name, "direction": side, "netns": d.netns, "device": device,
            "classes": [
                {"class": part.name, "handle": part.number, "tin": part.tin, "marked_at": part.marked_at}
                for part in (queueing.parts(lab.impairments[name, "forward" if side == BOTH else side])
                             if device == d.carrier else ())
            ],
        }
        for name, side, d, device in _devices(lab)
    ]  # fmt: skip


def _devices(lab: Lab) -> Iterator[tuple[str, str, Direction, str]]:
    """Yields link, direction and device of each sampled device. A direction has its own device, and a
    half-duplex link also has a shared one; a medium has only the shared one.
    """
    for name, side, d in directions(list(lab.links.values())):
        if lab.link(name).kind != "medium":
            yield name, side, d, d.device
        if d.shared is not None and side == "reverse":
            yield name, BOTH, d, d.shared
