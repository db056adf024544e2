"""Builds a lab's network in phases and reads each phase back: namespaces, wires, addresses, impairments,
proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from contract import rundir
from contract.plan import Link, Node, Step
from orchestrator import queueing
from orchestrator.lab import carriers, nics, path_proof, proof, readback, tables
from orchestrator.lab.driver import Tracer
from orchestrator.lab.errors import LabError, TimedOut
from orchestrator.lab.events import Warning
from orchestrator.lab.lab import Lab
from orchestrator.lab.links import ports as all_ports
from orchestrator.lab.probes import directions
from orchestrator.plan.half_duplex import MEDIUM, ports
from orchestrator.queueing import half_duplex

TREE_NS = 60_000_000_000  # twice the forward delay of a spanning tree, and time for topology changes
PORTS_NS = 10_000_000_000  # a physical port may negotiate its speed for some seconds
PORT_NS = 10_000_000  # per port: the kernel reports links that came up in batches of a hundred


def build(lab: Lab) -> None:
    """Builds and proves the network; raises LabError at the first difference from the plan."""
    nics.claim(lab)
    create(lab, list(lab.nodes.values()))
    nics.place(lab)
    network(lab, lab.plan.steps)
    configure(lab, list(lab.nodes.values()))
    nics.wait_for_carrier(lab)
    wait_for_ports(lab, None)
    wait_for_wires(lab)
    impairments(lab)
    prove(lab, lab.plan.links)


def create(lab: Lab, nodes: Sequence[Node]) -> None:
    lab.events.phase("create", 0, len(nodes), f"{len(nodes)} nodes")
    lab.pids |= lab.driver.create(nodes, lab.plan.core_netns)
    limits = lab.driver.limit(nodes)
    lab.forget_limits(nodes)
    lab.note_limits(limits)
    tell_shared_cores(lab, [n.name for n in nodes if n.own_core and "core" not in limits.get(n.name, {})])
    for node in nodes:
        lab.node_states[node.name] = "running" if node.vm is None else "defined"
    lab.events.phase("create", len(nodes), len(nodes), f"{len(nodes)} nodes, {len(limits)} with limits")


def tell_shared_cores(lab: Lab, without: Sequence[str]) -> None:
    """Warns of nodes that request a core (`own_core`) and got none; not in virtual time, where no process
    waits for a core.
    """
    if without and lab.time == "real":
        names = ", ".join(without[:10])
        lab.events.warn(Warning(
            "shared-core", f"own_core: there is none to give to {names}",
            "take a machine with more cores, the host kernel (--kernel host), or `own_core` from other nodes",
        ))  # fmt: skip


def network(lab: Lab, steps: Sequence[Step]) -> None:
    """Makes bridges and wires with the steps for `ip`, and reads them back from the core namespace; raises
    LabError if they differ from the plan.
    """
    wires = [s for s in steps if s.tool == "ip"]
    for done, step in enumerate(wires):
        lab.events.phase("network", done, len(wires), step.reason)
        lab.driver.apply(step)
    readback.insist(readback.core_devices(lab.plan, lab.driver.devices(lab.plan.core_netns)))
    lab.events.phase("network", len(wires), len(wires), "bridges and ports read back")


def configure(lab: Lab, nodes: Sequence[Node]) -> None:
    """Sets addresses, host names and offloads, and compares the values that the nodes' agents read back;
    raises LabError if they differ. Applies the topology's policy to nodes that failed.
    """
    lab.events.phase("configure", 0, len(nodes), "addresses")
    core = [port for node in nodes for port in all_ports(node)]
    read = lab.driver.configure(nodes, core)
    failed = {name: str(answer["failed"]) for name, answer in read.items() if "failed" in answer}
    readback.insist(readback.agents([n for n in nodes if n.name not in failed], read))
    lab.pids |= {name: answer["pid"] for name, answer in read.items() if answer.get("pid")}
    if routers := [n for n in nodes if n.vrfs and n.name not in failed]:
        from orchestrator.lab import vrfs  # imported here, because every import makes the start slower

        vrfs.set_routes(lab, routers)
    settle_failed(lab, failed)
    lab.events.phase("configure", len(nodes), len(nodes), "addresses read back")


def wait_for_ports(lab: Lab, ports: Sequence[str] | None) -> None:
    """Waits until bridges forward frames of these ports (None: all); raises TimedOut with the ports that do
    not forward. Ignores ports of machines that did not boot.
    """
    core, waiting = lab.plan.core_netns, [""]
    failed = [n for n in lab.nodes.values() if lab.node_states.get(n.name, "").startswith("failed")]
    trees = {segment.bridge for segment in lab.plan.segments if segment.stp}
    count = len(ports) if ports is not None else sum(map(len, map(all_ports, lab.nodes.values())))
    patience_ns = patience(count, bool(trees))
    dead = {port for node in failed for port in all_ports(node)}  # ports of machines that did not boot

    def forwarding() -> bool:
        found = readback.not_forwarding(lab.driver.devices(core), ports, trees)
        waiting[:] = [port for port in found if port not in dead]
        return not waiting

    try:
        lab.loop.until(lab.loop.clock.now_ns() + patience_ns, "bridge ports to forward", forwarding)
    except TimedOut as error:
        raise TimedOut(f"{error}: {', '.join(waiting[:10])} in {core}; is their other end up?") from None


def wait_for_wires(lab: Lab) -> None:
    """Waits until links between nodes that bypass the core namespace forward frames; raises TimedOut with the
    links that do not. Returns at once for drivers that are no Tracer, such as `fake`.
    """
    if not isinstance(lab.driver, Tracer):
        return
    waiting: dict[str, list[str]] = {}
    for link in (li for li in lab.plan.links if li.kind == "nodes" and not li.through_core):
        for way in (link.forward, link.reverse):
            waiting.setdefault(way.netns, []).append(way.device)

    def passing() -> bool:
        nonlocal waiting
        waiting = carriers.not_passing(waiting)
        return not waiting

    try:
        patience_ns = patience(sum(map(len, waiting.values())))
        lab.loop.until(lab.loop.clock.now_ns() + patience_ns, "links between nodes to pass frames", passing)
    except TimedOut as error:
        first = [f"{name} in {netns}" for netns, names in waiting.items() for name in names]
        raise TimedOut(f"{error}: {', '.join(first[:10])}") from None


def patience(count: int, trees: bool = False) -> int:
    """Returns the longest time (ns) until `count` ports forward frames. trees: their bridges run a spanning
    tree.
    """
    return (TREE_NS if trees else PORTS_NS) + count * PORT_NS


def settle_failed(lab: Lab, failed: dict[str, str]) -> None:
    """Applies the topology's policy to nodes that failed to start (name -> reason): raises LabError, or warns
    and continues without them.

    LabError is also raised if no node is left.
    """
    if failed and (lab.plan.on_node_failure == "abort" or not lab.nodes.keys() - failed.keys()):
        raise LabError("; ".join(f"nodes.{name}: {why}" for name, why in failed.items()))
    for name, why in failed.items():
        lab.node_states[name] = f"failed: {why}"
        lab.meant |= {(name, s.name) for s in lab.node(name).software}
        lab.events.warn(Warning(
            "node-failed", f"nodes.{name}: {why}", "the run continued without it, as the file requests",
        ))  # fmt: skip


def impairments(lab: Lab) -> None:
    """Sets the qdiscs of all links with the plan's steps for `tc`, and reads them back in each namespace."""
    steps = [s for s in lab.plan.steps if s.tool == "tc"]
    if lab.plan.tables:
        tables.offer(lab.state.directory / "tc", lab.plan.tables)
    ways = [w for w in directions(lab.plan.links) if w[2].impairment.present]
    for done, step in enumerate(steps):
        lab.events.phase("impair", done, len(steps), f"{step.reason} in {step.netns}")
        lab.driver.apply(step)
    read_back(lab, lab.plan.links)
    lab.events.phase("impair", len(steps), len(steps), f"{len(ways)} impaired directions read back")


def read_back(lab: Lab, links: Sequence[Link]) -> None:
    """Compares the impaired directions of `links`, and the shared devices of half-duplex links and media,
    with the kernel's qdiscs; raises LabError if they differ.
    """
    ways = [w for w in directions(links) if w[2].impairment.present]
    media = [li for li in lab.links.values() if li.kind == MEDIUM and li not in links]
    shared = [li for li in (*links, *media) if li.half_duplex]
    places = dict.fromkeys([d.netns for _, _, d in ways] + [li.forward.netns for li in shared])
    entries = {netns: lab.driver.qdiscs(netns) for netns in places}
    found = [
        difference
        for name, side, d in ways
        for difference in readback.impairment(
            f"links.{name}.{side}", d.impairment, readback.of_host(entries[d.netns], d.host), d.carrier
        )
    ]
    for link in shared:  # shared devices include those of media, to which new ports have been added
        found += _transmitters(lab, link, entries)
    readback.insist(found)


def _transmitters(
    lab: Lab, link: Link, entries: dict[str, list[dict[str, Any]]]
) -> Iterator[readback.Difference]:
    """Yields a difference for each end of a half-duplex link or medium whose frames bypass the
    shared device.
    """
    for way in (link.forward, link.reverse) if link.kind != MEDIUM else ():
        for _, asked, read in half_duplex.mismatches(way.device, way.carrier, entries[way.netns]):
            yield readback.Difference(f"links.{link.name}.duplex", asked, read)
    if link.kind == MEDIUM:
        cards = [card for node in lab.nodes.values() for card in node.interfaces]
        entering = ports(link.a, cards, list(lab.links.values()))
        read_there = entries[link.forward.netns]
        for field, asked, read in half_duplex.port_mismatches(entering, link.forward.carrier, read_there):
            yield readback.Difference(f"segments.{link.a}.{field}", asked, read)


def prove(lab: Lab, links: Sequence[Link]) -> None:
    """Proves the links and, before the scenario and with a driver that can trace, the paths; resets queues
    that the proof's frames have changed; writes the results to proof.json.

    For a node that is added later, the results are appended. A failed proof gives a warning (20 at most)
    and makes the run suspect.
    """
    ways = len(directions(links))
    lab.events.phase("prove", 0, ways, f"{ways} directions")
    judgements, tolerances = _prover(lab).prove(links, once=lab.ready)
    for _, _, d in directions(links):
        if text := queueing.forget_text(d.carrier, d.impairment):
            lab.driver.apply(Step("tc", d.netns, text, "queues forget the proof's frames", d.host))
    if not lab.ready and isinstance(lab.driver, Tracer):
        lab.events.phase("prove", ways, ways, "paths")
        judgements += path_proof.prove(lab.plan, lab.driver, tolerances.delay)
    before = rundir.read_proof(lab.run_dir) if lab.ready else []
    rundir.write_proof(lab.run_dir, [*before, *judgements])
    failed = [j for j in judgements if j.verdict == "fails"]
    for j in failed[:20]:
        what = "" if j.direction == "path" else "link "
        lab.events.warn(Warning(
            "proof", f"{what}{j.link} {j.direction}: {j.quantity}: {j.reason}",
            "compare with proof.json; on a busy machine repeat the run when it is idle",
        ))  # fmt: skip
    lab.events.phase("prove", ways, ways, f"{len(judgements)} quantities judged, {len(failed)} fail")


def _prover(lab: Lab) -> proof.Prover:
    kernel, virtual = str(lab.manifest.kernel.get("kind")), lab.time == "virtual"
    return proof.Prover(lab.driver, lab.plan.core_netns, lab.plan.proof, kernel, virtual, lab.plan.tables)
