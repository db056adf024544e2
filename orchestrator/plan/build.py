"""Computes the plan of a topology. The same file, lab name and seed always give the same plan."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from contract.plan import CLOCK_NS, Capture, Node, Note, Plan, Route, Trace

from ..language.problem import Problem, TopologyError, shown
from ..language.scalars import LONGEST_NAME, NAME_PATTERN
from ..software.kind import SoftwareError
from ..software.scene import Scene
from ..topology.expansion import Expansion
from ..topology.expect import Stated
from ..topology.loading import Topology
from ..topology.network import Capture as FileCapture
from .bursts import crowded
from .capture_point import capture_point
from .deadlines import late
from .expectations import plan_expectations
from .naming import core_netns, node_cgroup, node_netns
from .neighbours import known
from .network import Network, plan_network
from .paths import Paths
from .placement.loads import host_predictions
from .placement.mtu import fitted
from .placement.notes import host_notes
from .placement.over_hosts import over_hosts
from .predict import predictions
from .routing import plan_routes, vrfs_of
from .software import Programme, make_scene, plan_software, programs_of
from .steps import impair_steps, network_steps
from .timeline import cut_nodes, plan_events
from .vms import vm
from .vrfs import device_steps, planned


def make_plan(topology: Topology, lab_name: str | None = None, seed: int | None = None) -> Plan:
    """Returns the plan of a topology; None for `lab_name` or `seed` takes the value of the file.

    Raises TopologyError for an invalid lab name, for templates that fail with the values of a node, for
    expectations that name unknown parts, and for parts that fit on no host.
    """
    topology, lab = fitted(topology), _lab_name(topology, lab_name)
    seed = topology.seed if seed is None else seed
    model, names, lengths = topology.model, topology.names, topology.phases
    network = plan_network(model, names, lab, cut_nodes(model, names))
    events = plan_events(model, names, lengths, network.links, seed)
    routes = plan_routes(model, names, network)
    bare = {name: _node(lab, topology, names, network, name, routes) for name in names.nodes}
    paths = Paths(list(bare.values()), network.links, topology.tables)
    scene = make_scene(lab, seed, model, names, network, lengths, topology.parameters, paths)
    programme = _programme(topology, scene)
    nodes = tuple(dataclasses.replace(node, software=programme.software[name]) for name, node in bare.items())
    over = None
    if model.hosts:
        over = over_hosts(topology, names, lab, network, nodes, programme, paths)
        nodes = over.nodes
    vms = {node.name for node in nodes if node.kind == "vm"}
    segments, interfaces = network.segments, network.interfaces
    steps = over.steps if over else network_steps(lab, segments, interfaces, network.links, vms)
    steps += tuple(device_steps(nodes))
    captures = tuple(_capture(lab, name, point, network) for name, point in model.captures.items())
    cards = [card for own in network.interfaces.values() for card in own]
    reference = model.reference
    plan = Plan(
        lab=lab,
        core_netns=core_netns(lab),
        seed=seed,
        topology=topology.path,
        parameters=dict(topology.parameters),
        reference=reference.name if reference else None,
        scenario=reference.scenario if reference else None,
        segments=network.segments,
        nodes=nodes,
        links=network.links,
        captures=tuple(over.capture(one, network) for one in captures) if over else captures,
        events=events,
        ramp_ns=lengths.ramp_ns,
        hold_ns=lengths.hold_ns,
        drain_ns=lengths.drain_ns,
        steps=steps + impair_steps(lab, network.links, network.segments, cards, network.links),
        predictions=(),
        on_node_failure=model.run.on_node_failure,
        libvirt=model.libvirt,
        flows=programme.flows,
        receivers=programme.receivers,
        shared=programme.shared,
        programs=programs_of(programme.software),
        proof=model.proof.settings(),
        tables=topology.tables,
        traces=_traces(topology),
        trace_late_ns=model.run.trace_late,
        clock_ns=CLOCK_NS if model.run.clock is None else model.run.clock,
        hosts=over.hosts if over else (),
        tunnels=over.tunnels if over else (),
    )
    found = known(plan, programme.relays)
    plan = dataclasses.replace(
        plan, nodes=tuple(dataclasses.replace(n, neighbours=found.get(n.name, ())) for n in plan.nodes)
    )
    notes = (
        *topology.notes,
        *programme.notes,
        *late(plan, programme.relays),
        *crowded(plan, programme.relays),
        *_openings(nodes),
        *(host_notes(plan, model.underlay) if over else ()),
    )
    own = Stated(topology.document, tuple((("expect", n), one) for n, one in enumerate(model.expect)))
    expected = plan_expectations(own, plan)
    if topology.conditions is not None:
        expected += plan_expectations(topology.conditions, plan)
    if topology.goals is not None:
        plan_expectations(topology.goals, plan)
    plan = dataclasses.replace(plan, notes=notes, expectations=expected)
    predicted = predictions(plan) + (tuple(host_predictions(plan, over.placement)) if over else ())
    return dataclasses.replace(plan, predictions=predicted)


def _openings(nodes: Sequence[Node]) -> list[Note]:
    """Returns one note for each group, kind of access and list of paths with which nodes read or write files
    of the machine.
    """
    notes: dict[Note, None] = {}
    for node in nodes:
        for word, paths in (("reads", node.mounts_read), ("writes", node.mounts_write)):
            if paths:
                text = f"{word} {', '.join(paths)} of this machine"
                notes[Note(f"nodes.{node.group}", text, "make sure that you mean it")] = None
    return list(notes)


def _traces(topology: Topology) -> dict[str, Trace]:
    """Returns the traces of all links and media, by the name of their file."""
    ways = [way for li in topology.model.links.values() for way in (li.forward, li.reverse, li.both)]
    ways += [segment.medium for segment in topology.model.segments.values()]
    return {str(way.trace): way.trace.trace for way in ways if way is not None and way.trace is not None}


def _lab_name(topology: Topology, wanted: str | None) -> str:
    """Returns the lab's name, `wanted` or the topology's; raises TopologyError if it is invalid."""
    lab = topology.name if wanted is None else wanted
    if len(lab) > LONGEST_NAME or not re.fullmatch(NAME_PATTERN, lab):
        rule = f"a lab's name matches {NAME_PATTERN} and has at most {LONGEST_NAME} characters"
        raise TopologyError([Problem(topology.path, 0, "lab name", shown(lab), rule, "choose another name")])
    return lab


def _programme(topology: Topology, scene: Scene) -> Programme:
    """Returns the planned software; a SoftwareError becomes a TopologyError at the software of the node or
    group.
    """
    try:
        return plan_software(scene)
    except SoftwareError as error:
        section = "nodes" if error.node in topology.model.nodes else "groups"
        place = (section, scene.group_of[error.node], "software")
        raise TopologyError([topology.document.problem(place, "", error.rule, error.remedy)]) from None


def _node(
    lab: str,
    topology: Topology,
    names: Expansion,
    network: Network,
    name: str,
    routes: Mapping[str, tuple[Route, ...]],
) -> Node:
    """Returns the planned node without its software, which may depend on the paths between nodes."""
    machine = names.nodes[name]
    limit, reserve = machine.cpu_limit, machine.cpu_reserve
    archive = topology.images.get(machine.image or "")
    return Node(
        name=name,
        group=names.group_of[name],
        kind=machine.kind,
        hostname=name,
        netns=node_netns(lab, name),
        cgroup=node_cgroup(lab, name),
        interfaces=network.interfaces[name],
        software=(),
        cpu_limit_mhz=limit.mhz if limit else None,
        cpu_limit_cores=limit.cores if limit else None,
        cpu_reserve_mhz=reserve.mhz if reserve else None,
        cpu_reserve_cores=reserve.cores if reserve else None,
        own_core=machine.own_core,
        memory_limit_bytes=machine.memory_limit,
        process_limit=machine.process_limit,
        disk_limit_bytes=machine.disk_limit,
        vm=vm(machine, topology.path),
        forward=machine.forward,
        mounts_read=tuple(machine.mounts.read),
        mounts_write=tuple(machine.mounts.write),
        mounts_copy=tuple(machine.mounts.copied),
        routes=routes.get(name, ()),
        vrfs=planned(name, vrfs_of(names, name), network.interfaces[name], routes),
        outside=tuple(getattr(machine, "outside", ())),
        image=str(archive.path) if archive else "",
        image_digest=archive.digest if archive else "",
    )


def _capture(lab: str, name: str, point: FileCapture, network: Network) -> Capture:
    return capture_point(
        lab, name, point.at, network.segments, network.interfaces, network.links,
        snaplen=point.snaplen, filter=point.filter, keep=point.keep,
        limit_bytes=point.limit or 0, compress=point.compress or "", to=point.to or "",
    )  # fmt: skip
