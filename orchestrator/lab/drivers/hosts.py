"""Driver `hosts`, for nodes on several hosts: a part on each host runs that host's driver and takes requests
over its connection.

A request for one node, namespace or step goes to its host. A request for all goes to each host, and the
answers are merged. Each host has its own clock: requests carry times on the host's clock, and measured times
are converted to the lab's clock.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from contract.plan import Capture, Node, Step
from orchestrator.lab import operations, readback
from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import PATIENCE_NS, CaptureProcess, DriverContext, OnMessage
from orchestrator.lab.errors import LabError, TimedOut
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.multi_host import crossing, host_commands, probing, tunnels
from orchestrator.lab.multi_host.encoding import encode_operation, fields
from orchestrator.lab.multi_host.hostpart import FETCH_NS, HostCapture, HostPart, ask_all
from orchestrator.lab.multi_host.part_events import PartEvents
from orchestrator.lab.multi_host.parting import begin_request, wires_of
from orchestrator.lab.multi_host.places import Places
from orchestrator.lab.operations import Answer, Operation
from orchestrator.lab.vm import merge
from orchestrator.lab.vm.dialogue import begin, together

KEEP_UP_NS = 10 * SECOND
LEAVE_NS = 120 * SECOND
Outgoing = list[tuple[HostPart, Operation[Any]]]


class HostsDriver:
    """The driver of plans whose nodes are on several hosts."""

    name = "hosts"

    def __init__(self, context: DriverContext) -> None:
        self._at = context
        self._places = Places(context.plan)
        self._parts: dict[str, HostPart] = {}
        self._part_events = PartEvents(context, self._parts)
        self._ids = itertools.count(1)
        self._running: dict[int, tuple[HostPart, int]] = {}  # running commands, for their input and signals
        self._counters: dict[str, operations.Counters] = {}
        self._crossings: list[crossing.Crossing] = []
        self._busy: set[str] = set()  # hosts with a pending request for clock and files
        self._built = False

    def open(self) -> operations.Greeting:
        """Starts a part on each host and estimates the host's clock; raises LabError if a part
        cannot start.
        """
        ways = host_commands.of_run(self._at.run_dir)
        host_commands.note(self._at.state.directory, ways)
        for name, way in ways.items():
            lost = partial(self._lost, name)
            take = partial(self._part_events.take, name)
            part = HostPart(self._at.loop, self._at.run_dir, name, way.run, take, lost)
            self._parts[name] = part
            self._at.state.record(f"line to {name}", part.channel.pid)
        plan = self._at.plan
        told_each = {part: begin_request(plan, part.name, self._at.run_dir) for part in self._parts.values()}
        answers = ask_all(self._at.loop, "begin", told_each)
        for name, answer in answers.items():
            self._parts[name].facts = {**answer["value"]["facts"], "machine": ways[name].machine}
        self._estimate()
        self._tell_hosts()
        greeting: operations.Greeting = next(iter(answers.values()))["value"]["greeting"]
        offset = time.time_ns() - time.monotonic_ns()
        return {"version": greeting["version"], "pid": os.getpid(), "clock_offset_ns": offset}

    def create(self, nodes: Sequence[Node], core: str | None) -> dict[str, int]:
        self._places.add(nodes)
        asked = {
            part: {"nodes": fields(n for n in nodes if self._places.node(n.name) == part.name), "core": core}
            for part in self._there()
        }
        wanted = {part: message for part, message in asked.items() if message["nodes"] or not self._built}
        return self._joined("create", wanted)

    def apply(self, step: Step) -> None:
        asked = {
            self._part(host): {"step": dataclasses.asdict(dataclasses.replace(step, text=text))}
            for host, text in self._places.steps(step).items()
        }
        ask_all(self._at.loop, "apply", asked)

    def change(self, step: Step, device: str) -> list[dict[str, Any]]:
        ((host, text),) = self._places.steps(step).items()
        told_there = {"step": dataclasses.asdict(dataclasses.replace(step, text=text)), "device": device}
        found: list[dict[str, Any]] = self._of(host, "change", told_there)
        return found

    def configure(self, nodes: Sequence[Node], ports: Sequence[str]) -> dict[str, Any]:
        """Configures nodes and returns what every host reads back. The first call also makes the tunnels
        between hosts and measures the underlay.
        """
        if not self._built:
            self._join()
        wires = wires_of(self._at.plan) if not self._built else {}
        asked = {
            part: {
                "nodes": fields(n for n in nodes if self._places.node(n.name) == part.name),
                "ports": [port for port in ports if self._places.port(port) == part.name],
                "wires": wires.get(part.name, {}),
            }
            for part in self._there()
        }
        read = self._joined("configure", {p: m for p, m in asked.items() if m["nodes"] or m["ports"]})
        if not self._built:
            self._built = True
            self._crossings = crossing.measure(self._at.loop, self._at.plan, self._parts)
            self._tell_crossings()
        return read

    def _join(self) -> None:
        """Makes the tunnels that connect bridges of different hosts and reads them back."""
        plan = self._at.plan
        tunnels.make(self._at.loop, plan, self._parts)
        if plan.tunnels:
            readback.insist(readback.tunnels(plan, self.devices(plan.core_netns)))

    def devices(self, netns: str) -> list[dict[str, Any]]:
        return self._entries("devices", netns)

    def qdiscs(self, netns: str) -> list[dict[str, Any]]:
        return self._entries("qdiscs", netns)

    def seed(self, netns: str, seeds: Mapping[str, int]) -> dict[str, int]:
        """Seeds netem on every host that has the namespace; a device is on one of them."""
        parts = [self._part(host) for host in self._places.netns(netns)]
        return self._joined("seed", {p: {"netns": netns, "seeds": dict(seeds)} for p in parts if p.there})

    def limit(self, nodes: Sequence[Node]) -> dict[str, Any]:
        self._counters.clear()  # the sandbox's limits may have added controllers, whose files differ
        return self._joined("limit", self._by_host(nodes))

    def counters(self, node: Node) -> operations.Counters:
        if node.name not in self._counters:
            nodes = {n.name: n for n in self._at.plan.nodes} | {node.name: node}
            host = self._places.node(node.name)
            wanted = [n for n in nodes.values() if self._places.node(n.name) == host]
            self._counters |= self._of(host, "counters", {"nodes": fields(wanted)})
        return self._counters[node.name]

    def call(self, request: Operation[Answer], *, patience_ns: int = PATIENCE_NS) -> Answer:
        if isinstance(request, operations.Workload):
            self._estimate()  # each host gets t0 on its own clock
        asked = self._split(request)
        loop = self._at.loop
        answers: list[Message] = []
        for part, wanted in asked:
            told_there = {**encode_operation(wanted), "patience_ns": patience_ns}
            part.channel.ask("call", told_there, answers.append)
        loop.until(
            loop.clock.now_ns() + patience_ns, f"the hosts' answer to {request.op}",
            lambda: len(answers) == len(asked),
        )  # fmt: skip
        answer = request.read(self._as_one(request, answers))
        if isinstance(request, operations.Finish):
            self._collect()
        return answer

    def submit(self, request: Operation[Any], on_answer: OnMessage, on_event: OnMessage | None = None) -> int:
        number = next(self._ids)
        if isinstance(request, operations.OfOneExec):
            if request.target not in self._running:
                raise LabError(f"{request.op}: no running command has id {request.target}")
            part, inner = self._running[request.target]
            part.channel.submit(dataclasses.replace(request, target=inner), on_answer, on_event)
            return number
        asked = self._split(request)
        answers: list[Message] = []
        if not asked:
            loop = self._at.loop
            loop.at(loop.clock.now_ns(), lambda: on_answer(self._as_one(request, answers)))

        def answered(message: Message) -> None:
            answers.append(message)
            if len(answers) == len(asked):
                self._running.pop(number, None)
                on_answer(self._as_one(request, answers))

        for part, wanted in asked:
            inner = part.channel.submit(wanted, answered, on_event)
            if isinstance(request, operations.Exec):
                self._running[number] = part, inner
        return number

    def capture(
        self, capture: Capture, file: Path, on_death: Callable[[str], None] | None = None
    ) -> CaptureProcess:
        host = capture.host or self._places.netns(capture.netns)[0]
        self._part_events.captures[capture.name] = on_death or self._at.on_lost
        told_there = {"capture": dataclasses.asdict(capture), "file": str(file), "name": capture.name}
        self._of(host, "capture", told_there)
        return HostCapture(self._at.loop, self._part(host), capture.name, self._at.run_dir, file)

    def power(self, nodes: Sequence[Node], on: bool) -> None:
        ask_all(self._at.loop, "power", {p: {**m, "on": on} for p, m in self._by_host(nodes).items()})

    def reached(self, node: Node) -> list[str]:
        part = self._parts[self._places.node(node.name)]
        if not part.there:
            return []
        found: list[str] = self._of(part.name, "reached", {"node": dataclasses.asdict(node)})
        return found

    def destroy(self, nodes: Sequence[Node] | None) -> None:
        if nodes is None:
            ask_all(self._at.loop, "destroy", {part: {"nodes": None} for part in self._there()}, LEAVE_NS)
        else:
            ask_all(self._at.loop, "destroy", self._by_host(nodes))
            self._places.drop(nodes)

    def close(self) -> None:
        """Fetches the remaining files, then ends each part. If a host could not be reached, the state
        directory stays and holds the command that cleans the host up.
        """
        try:
            self._fetch_all()
        finally:
            left = self._leave()
            host_commands.note(self._at.state.directory, left)
            if left:
                self._at.state.stay(
                    f"{', '.join(left)} could not be reached at the end, and what the lab has there stays"
                )

    def _there(self) -> list[HostPart]:
        return [part for part in self._parts.values() if part.there]

    def _part(self, host: str) -> HostPart:
        return self._parts[host]

    def _of(self, host: str, verb: str, message: Message) -> Any:
        return ask_all(self._at.loop, verb, {self._part(host): message})[host]["value"]

    def _by_host(self, nodes: Iterable[Node]) -> dict[HostPart, Message]:
        found: dict[HostPart, Message] = {}
        for node in nodes:
            part = self._part(self._places.node(node.name))
            found.setdefault(part, {"nodes": []})["nodes"].append(dataclasses.asdict(node))
        return found

    def _joined(self, verb: str, asked: Mapping[HostPart, Message]) -> dict[str, Any]:
        answers = ask_all(self._at.loop, verb, asked, 4 * PATIENCE_NS)
        return {key: value for answer in answers.values() for key, value in answer["value"].items()}

    def _entries(self, verb: str, netns: str) -> list[dict[str, Any]]:
        """Returns the entries that each host has for a namespace, each entry with its `host`; omits hosts
        without the namespace.
        """
        parts = [self._part(host) for host in self._places.netns(netns)]
        answers = ask_all(self._at.loop, verb, {part: {"netns": netns} for part in parts if part.there})
        return [{**entry, "host": name} for name, answer in answers.items() for entry in answer["value"]]

    def _split(self, request: Operation[Any]) -> Outgoing:
        """Splits a request into one for each host that it concerns, with times on that host's clock."""
        if isinstance(request, operations.OfOneNode):
            return [(self._part(self._places.node(request.node)), request)]
        if isinstance(request, operations.Prove):
            return probing.split(request, self._places, self._there())
        if isinstance(request, operations.Workload):
            by_node = merge.by_node(request.items)
            of: dict[str, list[operations.Item]] = {}
            for node, items in by_node.items():
                of.setdefault(self._places.node(node), []).extend(items)
            return [(part, operations.Workload(of.get(part.name, []))) for part in self._there()]
        if isinstance(request, operations.Go):
            return [(part, operations.Go(part.clock.to_guest(request.t0_ns))) for part in self._there()]
        if isinstance(request, operations.Sample):
            return [(part, self._sampled(request, part.name)) for part in self._there()]
        if isinstance(request, operations.Messages):
            self._at.loop.every(KEEP_UP_NS, self._keep_up)
            Path(request.path).touch()
        return [(part, request) for part in self._there()]

    def _as_one(self, request: Operation[Any], answers: list[Message]) -> Message:
        if isinstance(request, operations.OfOneNode):
            return answers[0]
        if not self._there() and not answers:
            return {"ok": False, "error": f"{request.op}: no host of the lab is connected"}
        if isinstance(request, operations.Prove):
            return probing.joined(request, answers)
        return merge.joined(answers)

    def _sampled(self, request: operations.Sample, host: str) -> operations.Sample:
        nodes = [n for n in request.nodes if self._places.node(n["node"]) == host]
        links = [
            li for li in request.links
            if self._places.link(li["link"], li["direction"], li["netns"], li["device"]) == host
        ]  # fmt: skip
        return dataclasses.replace(request, nodes=nodes, links=links)

    def _estimate(self) -> None:
        """Estimates the hosts' clocks one after another, because concurrent work on other hosts lengthens the
        round trips.
        """
        for part in self._there():
            together(self._at.loop, f"host {part.name}'s clock", PATIENCE_NS, [(part, part.estimate())])

    def _keep_up(self) -> None:
        """Fetches clock estimates, records and samples during the load, so that they are kept if the host is
        lost later.
        """
        for part in self._there():
            if part.name not in self._busy:
                self._busy.add(part.name)
                begin(part, part.keep_up(), partial(self._free, part.name))

    def _free(self, host: str, _: Any, __: str | None) -> None:
        self._busy.discard(host)

    def _collect(self) -> None:
        """Fetches the last clock estimates and all records and samples after the load; warns of links whose
        latencies the clocks' error affects.
        """
        loop = self._at.loop
        loop.until(loop.clock.now_ns() + FETCH_NS, "files under way", lambda: not self._busy)
        parts = self._there()
        _, errors = together(loop, "the hosts' files", FETCH_NS, [(p, p.keep_up()) for p in parts])
        for name, why in errors.items():
            self._part_events.warn("collect", f"host {name}: records: {why}", "what came before is kept")
        self._tell_hosts()
        self._tell_crossings()
        clocks = self._part_events.clocks()
        if doubted := crossing.doubted(self._at.plan, self._crossings, clocks):
            self._part_events.warn(
                "clocks", "; ".join(doubted[:5]) + (f"; and {len(doubted) - 5} more" if doubted[5:] else ""),
                "one-way latencies over these links are no better than that; halves of round trips are",
            )  # fmt: skip

    def _fetch_all(self) -> None:
        parts = self._there()
        answers = ask_all(self._at.loop, "files", {part: {} for part in parts})
        dialogues = [(part, part.everything(answers[part.name]["value"])) for part in parts]
        together(self._at.loop, "the hosts' files", FETCH_NS, dialogues)

    def _leave(self) -> dict[str, host_commands.Way]:
        """Ends the part on every host and waits up to LEAVE_NS for its answer; returns the commands for hosts
        that may still have something of the lab.
        """
        ways, left = host_commands.of_run(self._at.run_dir), dict[str, host_commands.Way]()
        answers: dict[str, Message] = {}
        asked, loop = self._there(), self._at.loop
        for part in asked:
            part.channel.expect_end()
            part.channel.ask("leave", {}, partial(answers.__setitem__, part.name))
        # for a host that does not answer, the result has the command that removes the lab's part
        with suppress(TimedOut):
            loop.until(loop.clock.now_ns() + LEAVE_NS, "parts to end", lambda: len(answers) >= len(asked))
        for name, part in self._parts.items():
            part.channel.close()
            self._at.state.forget(part.channel.pid)
            if (
                not answers.get(name, {}).get("ok")
                and host_commands.down(ways[name], host_commands.AT_ONCE_S) is not None
            ):
                left[name] = ways[name]
        return left

    def _lost(self, host: str, why: str) -> None:
        """Applies the topology's policy for failed nodes to all nodes of a lost host."""
        self._part_events.lost(host, self._places.on(host), why)

    def _tell_hosts(self) -> None:
        self._part_events.clocks()
        facts = {n: {**part.facts, "nodes": len(self._places.on(n))} for n, part in self._parts.items()}
        self._at.on_event({"event": "hosts", "hosts": facts})

    def _tell_crossings(self) -> None:
        found = crossing.as_data(self._crossings, self._part_events.clocks())
        self._at.on_event({"event": "underlay", "underlay": found})
        if below := crossing.below(self._at.plan, self._crossings):
            self._part_events.once(
                "underlay", "; ".join(below[:5]) + (f"; and {len(below) - 5} more" if below[5:] else ""),
                "what the hosts' network adds is in all figures; put the nodes on one host (`near:`)",
            )  # fmt: skip
