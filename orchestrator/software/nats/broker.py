"""Defines the NATS server: its keys in a topology file, its checks and its plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from contract.plan import File, Flow, Probe, Process, Program, Software

from ...language.scalars import Port, Size, Span, text
from ...language.templates import render
from ..brokers import Service, Serving, check_own_setup
from ..checking import Checks, Here
from ..kind import Bind, Costs, Kind, Planned
from ..program_texts import filled_env, filled_files, filling
from ..programs import Restart, StopSignal
from ..scene import Placed, Scene
from .client import LARGEST_PAYLOAD, PROTOCOL

PLACE = "/usr/local/lib/vnet/brokers/nats"  # images/brokers/build.sh installs the broker there
PROGRAM = f"{PLACE}/bin/nats-server"
MEMORY_BYTES = 30_000_000
RENDERED = frozenset({"users", "max_pending"})


class NatsServer(Serving):
    """The NATS server, started in the foreground with a configuration rendered for this node."""

    broker: Literal["nats-server"] = Field(description="The broker program.")
    port: Port = Field(4222, description="TCP port of the broker, on all addresses of its node.")
    users: dict[str, str] = Field(
        default_factory=dict, description="User: password, of the only users that the broker admits."
    )
    max_pending: Size = Field(
        text("64 MB"),
        description="Bytes that may wait for a client; the broker disconnects one that is slower.",
    )
    ready_within: Span = Field(text("30 s"), description="Deadline until the broker listens on its port.")
    restart: Restart = "never"
    stop_signal: StopSignal = "SIGTERM"

    def services(self) -> Mapping[str, Service]:
        own = self.config is not None
        return {PROTOCOL: Service(self.port, users=self.users or None, own_config=own)}


def _check(report: Checks, here: Here, broker: NatsServer) -> None:
    check_own_setup(report, here.path, broker, RENDERED)
    if broker.max_pending < LARGEST_PAYLOAD:
        rule = "is less than the longest message"
        report.add((*here.path, "max_pending"), f"{broker.max_pending} B", rule, 'write for example "64 MB"')
    image = report.image(here.nodes[0])
    if image is not None and broker.program is None:
        rule = f"the image {image} has no NATS server"
        report.add(here.path, None, rule, "write `kind: light` at the node, or `program:`")


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    for placed in all_of_it:
        values, path = scene.values(placed.node), f"{placed.name}/nats.conf"
        with filling(placed.node):
            process = _process(values, placed.model, path, placed.node)
        ports: dict[str, tuple[int, ...]] = {PROTOCOL: (placed.model.port,)}
        yield Planned(Software(placed.name, "broker", KIND.name, process, ports=ports))


def _process(values: dict[str, Any], broker: NatsServer, path: str, node: str) -> Process:
    config: dict[str, Any] = {
        "server_name": node,
        "listen": f"0.0.0.0:{broker.port}",
        "max_payload": LARGEST_PAYLOAD,
        "max_pending": broker.max_pending,
    }
    if broker.users:
        users = [{"user": name, "password": word} for name, word in broker.users.items()]
        config["authorization"] = {"users": users}
    # The server's configuration format includes JSON.
    said = json.dumps(config, indent=1) + "\n" if broker.config is None else render(broker.config, values)
    return Process(
        argv=(broker.program or PROGRAM, "-c", path),
        # One thread runs Go's code, which saves memory; in virtual time a node has only one core.
        env={"GOMAXPROCS": "1", **filled_env(broker.env, values)},
        files=(File(path, said), *filled_files(broker.files, values)),
        ready=Probe(tcp_port=broker.port, deadline_ns=broker.ready_within),
        restart=broker.restart,
        stop_signal=broker.stop_signal,
    )


def _words(software: Software, _flows: Sequence[Flow]) -> str:
    return f"broker, port {software.ports[PROTOCOL][0]}"


KIND = Kind(
    name="nats-server",
    key="broker",
    model=NatsServer,
    what="a broker",
    example="broker: nats-server",
    check=_check,
    plan=_plan,
    words=_words,
    costs=lambda _software, _flows: Costs(memory_bytes=MEMORY_BYTES),
    in_agent=False,
    endpoint=lambda _model: False,
    binds=lambda broker: (Bind("tcp", broker.port, ("port",)),),
    programs=(
        Program(
            PROGRAM,
            "",
            ("cat", f"{PLACE}/version"),
            "topologies with the broker nats-server fail in plan",
            "images/brokers/build.sh nats",
            PLACE,
        ),
    ),
    titles={"NatsServer": "software.NAME: the broker NATS"},
)
