"""Plans the software of all nodes: each kind plans its own, and flows are gathered and numbered here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from contract.plan import Flow, Note, Program, Software

from ..software.kind import Ledger, Planned
from ..software.registry import KINDS, endpoints, kind_of, session_names
from ..software.scene import Placed, Scene
from ..topology.expansion import Expansion
from ..topology.phases import Phases, clients, interval_ns
from .network import Network
from .paths import Paths


@dataclass(frozen=True)
class Programme:
    """The software of all nodes, with the flows that it sends and their receivers."""

    software: dict[str, tuple[Software, ...]]  # node -> its software, in the order of the file
    flows: tuple[Flow, ...]
    receivers: dict[str, tuple[str, ...]]
    notes: tuple[Note, ...]
    relays: dict[str, str]  # flow -> the node that relays its messages
    # receiver that stands for a group -> the endpoints of the group's members
    shared: dict[str, tuple[str, ...]]


def make_scene(
    lab: str,
    seed: int,
    model: Any,
    names: Expansion,
    network: Network,
    lengths: Phases,
    parameters: dict[str, Any],
    paths: Paths,
) -> Scene:
    """Returns the input for the kinds of software: the planned network, all software, and the time at which
    each client connects.
    """
    order = clients(names)
    gap = interval_ns(model, len(order))
    connects = {client: place * gap for place, client in enumerate(order)}
    return Scene(
        lab,
        seed,
        parameters,
        names.group_of,
        names.index_of,
        names.groups,
        {node: tuple(_placed(names, node, connects)) for node in names.nodes},
        network.interfaces,
        network.links,
        network.subnets,
        paths.bottleneck_bps,
        lengths.ramp_ns,
        lengths.hold_ns,
        lengths.drain_ns,
    )


def _placed(names: Expansion, node: str, connects: dict[tuple[str, str], int]) -> Iterator[Placed]:
    software = names.nodes[node].software
    recorded = endpoints(node, software)
    for name, model in software.items():
        kind = kind_of(model).name
        for number, each in enumerate(session_names(name, model), 1):
            at_ns = connects.get((node, each), 0)
            yield Placed(node, each, kind, model, recorded.get(each, ""), at_ns, number, name)


def plan_software(scene: Scene) -> Programme:
    """Returns the software of every node; raises SoftwareError if a kind cannot plan its software."""
    found: dict[tuple[str, str], Planned] = {}
    all_placed = [placed for all_of_it in scene.placed.values() for placed in all_of_it]
    for name in KINDS:
        mine = [placed for placed in all_placed if placed.kind == name]
        for placed, planned in zip(mine, KINDS[name].plan(scene, mine) if mine else (), strict=True):
            found[placed.node, placed.name] = planned
    ordered = {
        node: [found[node, placed.name] for placed in all_of_it] for node, all_of_it in scene.placed.items()
    }
    return _gathered(ordered)


def _gathered(ordered: dict[str, list[Planned]]) -> Programme:
    flows: list[Flow] = []
    receivers: dict[str, tuple[str, ...]] = {}
    notes: dict[Note, None] = {}
    relays: dict[str, str] = {}
    shared: dict[str, tuple[str, ...]] = {}
    for planned in (one for of_node in ordered.values() for one in of_node):
        notes |= dict.fromkeys(_from_elsewhere(planned.software))
        flows += planned.flows
        for name, those in planned.receivers.items():
            assert receivers.setdefault(name, those) == those, f"two sets of receivers called {name}"
        shared |= planned.shared
        notes |= dict.fromkeys(planned.notes)
        if planned.relay is not None:
            relays |= {flow.name: planned.relay for flow in planned.flows}
    ledger = Ledger.of(flows, receivers)
    software = {
        node: tuple(KINDS[one.software.kind].numbered(one.software, ledger) for one in of_node)
        for node, of_node in ordered.items()
    }
    return Programme(software, ledger.flows, receivers, tuple(notes), relays, shared)


def _from_elsewhere(software: Software) -> Iterator[Note]:
    """Yields the plug-in that a piece of software comes from, so that a run's record has its version."""
    if (offer := KINDS.origin(software.kind)) is not None:
        text = f"software `{software.kind}` is of the plug-in {offer.package} {offer.version}, not of vNET"
        yield Note("software", text, "a repetition of the run needs that version, too")


def programs_of(software: dict[str, tuple[Software, ...]]) -> tuple[Program, ...]:
    """Returns the programs that this software needs, each once."""
    kinds = dict.fromkeys(one.kind for of_node in software.values() for one in of_node)
    return tuple(dict.fromkeys(program for kind in kinds for program in KINDS[kind].programs))
