"""Driver `vm`, for labs with virtual machines: libvirt domains on taps of the core namespace.

The light driver does everything except the machines. Machines boot when their wires exist (`configure`);
until then they are only defined.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from contract.plan import Capture, Node, Step
from orchestrator.images import Image, ImageError, locate
from orchestrator.lab import operations
from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import PATIENCE_NS, DriverContext, OnMessage
from orchestrator.lab.drivers.light import LightDriver
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.machine import insist_on_memory
from orchestrator.lab.operations import Answer, Operation
from orchestrator.lab.traceroute import Traceroute, TracerouteResult
from orchestrator.lab.vm import accel, account, carry, storage, wires
from orchestrator.lab.vm.connection import Connection
from orchestrator.lab.vm.dispatcher import Dispatcher
from orchestrator.lab.vm.fleet import Fleet
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.limits import VmLimits
from orchestrator.lab.vm.machines import Machines
from orchestrator.lab.vm.names import Names
from orchestrator.lab.vm.rearming import Rearming
from orchestrator.lab.vm.sampling import Sampling
from orchestrator.lab.vm.shown import Shown
from orchestrator.lab.vm.silence import Silence
from orchestrator.lab.vm.watch import Watch


class VmDriver:
    """The driver of labs with nodes of `kind: vm`."""

    name = "vm"

    def __init__(self, context: DriverContext) -> None:
        plan = context.plan
        light = tuple(n for n in plan.nodes if n.vm is None)
        self._at = context
        self._watch = Watch(context)
        self._light = LightDriver(
            dataclasses.replace(
                context, plan=dataclasses.replace(plan, nodes=light), on_event=self._watch.light
            )
        )
        self._guests: dict[str, Guest] = {}
        self._rearming = Rearming(context.run_dir / "raw" / "messages.csv")
        self._silence = Silence(context.loop, self._guests, self._watch)
        self._names = Names(context.loop, self._light.known, self._watch.warn)
        self._dispatcher = Dispatcher(
            context.loop, self._light.submit, self._guests, self._silence, self._watch.log
        )
        self._links = list(plan.links)
        self._fleet: Fleet | None = None
        self._account = account.of_lab(context.state.directory)
        self._shown = Shown(context.state.directory, self._account)
        self._sampling = Sampling(
            context.loop, plan.core_netns, self._guests, lambda: self._links, self._watch
        )

    def open(self) -> operations.Greeting:
        """Starts the launcher of light nodes and connects to libvirt; warns if the machines run without KVM.
        Raises LabError for a wrong URI, a missing image, or a directory that QEMU's account cannot enter.
        """
        about, state = self._light.open(), self._at.state.directory
        account.insist_on_a_way(self._account, state, "state directory (VNET_STATE_DIR)")
        self._account.enters(state)
        disks = storage.make(state)
        account.insist_on_a_way(self._account, disks, f"directory for disks ({storage.VARIABLE})")
        for node in self._at.plan.nodes:
            self._defined(node)
        self._guests.clear()
        connection = Connection(self._at.plan.libvirt, state)
        (state / "libvirt").write_text(self._at.plan.libvirt + "\n")
        first = next(n for n in self._at.plan.nodes if n.vm is not None)
        found = accel.verdict(self._image(first), self._account, self._shown.image)
        if not found.kvm:
            accel.no_huge_pages()
            self._watch.warn(
                "tcg", f"no KVM: {found.why}; the virtual machines are emulated by TCG",
                "CPU figures and latencies are not those of real machines; run it on a host with KVM",
            )  # fmt: skip
        bounds = VmLimits(os.cpu_count() or 1, self._at.cpu_mhz, connection.libvirt)
        machines = Machines(self._at.plan, state, connection, bounds, found.kvm, self._account)
        self._fleet = Fleet(
            self._at, connection, machines, bounds, self._guests, self._watch, self._rearming, self._silence,
            self._names,
        )  # fmt: skip
        return about

    def create(self, nodes: Sequence[Node], core: str | None) -> dict[str, int]:
        """Creates the light nodes, whose pids it returns. Defines the machines, which boot in `configure`.
        Raises LabError if the memory or the disk space for the machines is too small.
        """
        insist_on_memory(nodes)
        storage.insist([n for n in nodes if self._has_disk(n)], storage.of_lab(self._at.state.directory))
        self._light.know(n for n in nodes if n.vm is not None)
        pids = self._light.create([n for n in nodes if n.vm is None], core)
        for node in nodes:
            self._defined(node)
        return pids

    def apply(self, step: Step) -> None:
        guest = self._inside(step.netns)
        if guest is not None:
            carry.step(self._at.loop, guest, step)
            return
        self._light.apply(step)
        self._cut(step)

    def change(self, step: Step, device: str) -> list[dict[str, Any]]:
        if self._inside(step.netns) is None:
            return self._light.change(step, device)
        self.apply(step)
        return self.qdiscs(step.netns)

    def configure(self, nodes: Sequence[Node], ports: Sequence[str]) -> dict[str, Any]:
        """Configures the light nodes and boots the machines among `nodes`; the answer of a failed machine is
        `failed` with the reason.
        """
        for node in nodes:
            if node.name in self._guests:
                self._guests[node.name].node = node
        read = self._light.configure([n for n in nodes if n.vm is None], ports)
        machines = [self._guests[n.name] for n in nodes if n.name in self._guests]
        self._names.renew(g for g in self._guests.values() if g not in machines)
        came = self._open_fleet.bring_up(machines) if machines else {}
        self._silence.start()
        return read | came

    def devices(self, netns: str) -> list[dict[str, Any]]:
        guest = self._inside(netns)
        return (
            self._light.devices(netns)
            if guest is None
            else carry.entries(self._at.loop, guest, "ip", "-d", "link")
        )

    def qdiscs(self, netns: str) -> list[dict[str, Any]]:
        guest = self._inside(netns)
        if guest is not None and guest.connected and not guest.ready:
            return []  # the machine's qdiscs cannot be read; its state gives the reason
        return (
            self._light.qdiscs(netns)
            if guest is None
            else carry.entries(self._at.loop, guest, "tc", "qdisc", "show")
        )

    def seed(self, netns: str, seeds: Mapping[str, int]) -> dict[str, int]:
        """Seeds netem on the host; generators inside guests keep their own seeds."""
        return self._light.seed(netns, seeds) if self._inside(netns) is None else {}

    def traceroute(self, ways: Sequence[Traceroute]) -> list[TracerouteResult]:
        return self._light.traceroute(ways)

    def limit(self, nodes: Sequence[Node]) -> dict[str, Any]:
        light = [n for n in nodes if n.vm is None]
        applied = self._light.limit(light) if light else {}
        machines = [n for n in nodes if n.vm is not None]
        return applied | (self._open_fleet.limit(machines) if machines else {})

    def counters(self, node: Node) -> operations.Counters:
        return self._light.counters(node) if node.vm is None else {"cpu": [], "memory": None}

    def power(self, nodes: Sequence[Node], on: bool) -> None:
        """Fetches the machines' files and powers them off; with `on`, boots and configures them again."""
        self._light.power([n for n in nodes if n.vm is None], on)
        machines = [self._guests[n.name] for n in nodes if n.name in self._guests]
        for guest, node in ((g, n) for g in machines for n in nodes if n.name == g.name):
            guest.node = node
        if machines:
            self._open_fleet.power(machines, on)

    def call(self, request: Operation[Answer], *, patience_ns: int = PATIENCE_NS) -> Answer:
        if isinstance(request, operations.Workload):
            self._open_fleet.collector.estimate_clocks()  # each machine gets t0 on its own clock
        answers: list[Message] = []
        self.submit(request, answers.append)
        deadline = self._at.loop.clock.now_ns() + patience_ns
        self._at.loop.until(deadline, f"the agents' answer to {request.op}", lambda: bool(answers))
        answer = request.read(answers[0])
        if isinstance(request, operations.Finish):
            self._open_fleet.collector.collect()
        return answer

    def submit(self, request: Operation[Any], on_answer: OnMessage, on_event: OnMessage | None = None) -> int:
        if isinstance(request, operations.Prove | operations.Messages):
            if isinstance(request, operations.Messages):
                self._watch.messages(Path(request.path), self._open_fleet)
            return self._light.submit(request, on_answer, on_event)
        if isinstance(request, operations.Sample):
            return self._sample(request, on_answer)
        if isinstance(request, operations.Go):
            self._rearming.t0_ns = t0 = request.t0_ns
            for guest in self._guests.values():
                if not guest.ready:
                    self._rearming.ended(guest.name, t0)
            return self._dispatcher.each(
                request, on_answer, lambda g: operations.Go(self._watch.clock(g).to_guest(t0))
            )
        if isinstance(request, operations.Workload):
            self._rearming.armed(request.items)
        self._rearming.over |= isinstance(request, operations.Finish)
        if isinstance(request, operations.Software):
            return self._dispatcher.submit(request, lambda a: on_answer(self._with_the_off(a)), on_event)
        return self._dispatcher.submit(request, on_answer, on_event)

    def capture(self, capture: Capture, file: Path, on_death: Callable[[str], None] | None = None) -> Any:
        return self._light.capture(capture, file, on_death)

    def destroy(self, nodes: Sequence[Node] | None) -> None:
        machines = [g for g in self._guests.values() if nodes is None or g.name in {n.name for n in nodes}]
        if nodes is None:
            self._sampling.stop()
            self._silence.stop()
        if self._fleet is not None:
            self._fleet.destroy(machines)
        self._light.forget(g.node for g in machines)
        self._light.destroy(None if nodes is None else [n for n in nodes if n.vm is None])
        if nodes is not None:
            self._names.renew(self._guests.values())
        if nodes is not None and machines:
            core = self._at.plan.core_netns
            there = {str(e["ifname"]) for e in self._light.devices(core)}
            if step := wires.unplugged(core, machines, self._links, there):
                self._light.apply(step)

    def close(self) -> None:
        self._sampling.stop()
        self._silence.stop()
        try:
            if self._fleet is not None:
                self._fleet.close()
        finally:
            self._shown.close()
            storage.remove(self._at.state.directory)
            self._light.close()

    def snapshot(self, nodes: Sequence[Node], name: str) -> None:
        """Saves the machines' memory and disks under a name; the machines continue afterwards. Raises
        LabError for a light node.
        """
        self._open_fleet.snapshot([self._machine(n) for n in nodes], name)

    def revert(self, nodes: Sequence[Node], name: str) -> None:
        """Returns the machines to a snapshot and renews the names that they resolve. Raises LabError for a
        light node.
        """
        machines = [self._machine(n) for n in nodes]
        self._open_fleet.revert(machines, name)
        self._names.renew(machines)  # nodes may have been added or removed since the snapshot

    def _defined(self, node: Node) -> None:
        if node.vm is None:
            return
        state, logs = self._at.state.directory, self._at.run_dir / "raw" / "logs"
        log, disks = logs / f"{node.name}.console.log", storage.of_lab(state)
        guest = Guest(node, self._image(node), state / "vm" / node.name, disks / node.name, log)
        self._guests[node.name] = guest

    def _machine(self, node: Node) -> Guest:
        if node.name not in self._guests:
            raise LabError(f"nodes.{node.name}: is a light node; only virtual machines have snapshots")
        return self._guests[node.name]

    @property
    def _open_fleet(self) -> Fleet:
        if self._fleet is None:
            raise LabError("virtual machines: libvirt was not opened")
        return self._fleet

    def _inside(self, netns: str) -> Guest | None:
        return next((g for g in self._guests.values() if g.node.netns == netns), None)

    def _cut(self, step: Step) -> None:
        if self._fleet is not None and step.netns == self._at.plan.core_netns and step.tool == "ip":
            for port, up in wires.moved(step.text):
                self._fleet.carrier(port, up)

    def _sample(self, request: operations.Sample, on_answer: OnMessage) -> int:
        guests = {g.node.netns for g in self._guests.values()}
        light = [n for n in request.nodes if n["node"] not in self._guests]
        links = [li for li in request.links if li["netns"] not in guests]
        if self._sampling.start(Path(request.dir), self._open_fleet.libvirt):
            self._at.loop.every(10 * SECOND, self._open_fleet.collector.keep_up)
        return self._light.submit(dataclasses.replace(request, nodes=light, links=links), on_answer)

    def _with_the_off(self, answer: Message) -> Message:
        """Adds the last known programs of machines that are off or silent to an answer with
        software states.
        """
        nodes = answer.setdefault("nodes", {}) if answer.get("ok") else {}
        for guest in self._guests.values():
            if guest.ready:
                guest.software = nodes.get(guest.name, {})
            elif answer.get("ok"):
                nodes[guest.name] = {
                    name: {**state, "state": state_without_answer(guest, state)}
                    for name, state in guest.software.items()
                }
        return answer

    def _has_disk(self, node: Node) -> bool:
        return node.vm is not None and self._image(node).disk is not None

    def _image(self, node: Node) -> Image:
        """Returns the node's image by a path that QEMU's account can read; raises LabError if it
        is missing.
        """
        assert node.vm is not None
        try:
            return self._shown.image(locate(node.vm.image, self._at.agent))
        except (ImageError, LabError) as error:
            raise LabError(f"nodes.{node.name}.image: {error}") from error


def state_without_answer(guest: Guest, last: operations.SoftwareState) -> str:
    """Returns the state of a program whose machine does not answer: `unknown` if the machine is up, else
    `failed` or `exited`.
    """
    if guest.up:
        return "unknown"
    return "failed" if last["state"] == "failed" else "exited"
