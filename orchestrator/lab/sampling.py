"""The counters that are sampled once a second: of the nodes and links that the lab has now."""

from __future__ import annotations

from collections.abc import Iterator

from contract.plan import Direction
from orchestrator import queueing
from orchestrator.lab.clock import SECOND
from orchestrator.lab.lab import Lab
from orchestrator.lab.operations import Sample, SampledLink, SampledNode
from orchestrator.lab.probes import BOTH, directions

NEVER_NS = 10**9 * SECOND  # the longest wait of a sampler, which then sleeps: 31 years


def start(lab: Lab) -> None:
    """Starts sampling, or continues with other nodes and links in the same files."""
    lab.sampling = True
    _sample(lab)


def look(lab: Lab) -> bool:
    """Starts samples for a client of a lab that serves; returns whether samples are taken now. A scenario
    takes its own samples, which a client does not change.
    """
    if lab.serving and not lab.sampling and not lab.watched:
        lab.watched = True
        _sample(lab)
    return lab.sampling or lab.watched


def look_away(lab: Lab) -> None:
    """Ends the samples for clients; a scenario's own continue."""
    if lab.watched:
        lab.watched = False
        lab.driver.submit(Sample(NEVER_NS, str(lab.run_dir / "raw"), [], []), lambda _: None)


def renew(lab: Lab) -> None:
    """Updates the sampled nodes and links after nodes were added or removed."""
    if lab.sampling or lab.watched:
        _sample(lab)


def _sample(lab: Lab) -> None:
    lab.driver.call(Sample(SECOND, str(lab.run_dir / "raw"), _nodes(lab), _links(lab)))


def _nodes(lab: Lab) -> list[SampledNode]:
    return [
        {
            "node": n.name,
            "ports": [i.port for i in n.interfaces if i.port],
            # Wires to other nodes, and NICs of the machine. Only a virtual machine itself can read its NIC.
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
                {"class": part.name, "handle": part.number, "tin": part.tin}
                for part in (queueing.parts(lab.impairments[name, "forward" if side == BOTH else side])
                             if device == d.carrier else ())
            ],
        }
        for name, side, d, device in _devices(lab)
    ]  # fmt: skip


def _devices(lab: Lab) -> Iterator[tuple[str, str, Direction, str]]:
    """Sampled devices: for half duplex each end and the shared device, for a medium only the shared
    device.
    """
    for name, side, d in directions(list(lab.links.values())):
        if lab.link(name).kind != "medium":
            yield name, side, d, d.device
        if d.shared is not None and side == "reverse":
            yield name, BOTH, d, d.shared
