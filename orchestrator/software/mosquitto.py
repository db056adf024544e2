"""Describes the broker mosquitto: starts it in the foreground, with a configuration rendered for its node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from contract.plan import REFLECT_DSCP, File, Flow, Probe, Process, Program, Software

from ..language.scalars import Port, Span, text
from .brokers import Service, Serving
from .checking import Checks, Here
from .kind import Bind, Costs, Kind, Planned
from .mqtt.file import PROTOCOL
from .programs import Restart, StopSignal, template
from .scene import Placed, Scene

MEMORY_BYTES = 4_000_000  # bench/memory.py: 3.5 to 4 MB with 350 clients that publish 0.3 messages/s each
TEMPLATE = Path(__file__).parent / "mosquitto.conf.j2"
_OPTION = re.compile(r"[a-z][a-z0-9_]*")


class Broker(Serving):
    """An MQTT broker, started in the foreground with a configuration rendered for this node."""

    broker: Literal["mosquitto"] = Field(description="Which broker.")
    port: Port = Field(1883, description="TCP port it listens on, on all addresses of its node.")
    persistence: bool = Field(False, description="Keep sessions and queued messages across restarts.")
    max_inflight_messages: int = Field(
        20, ge=0, le=65535, description="Unacknowledged messages a client; 0: any."
    )
    max_queued_messages: int = Field(
        1000, ge=0, le=2**31 - 1, description="Messages queued for a client; 0: any."
    )
    allow_anonymous: bool = Field(True, description="Admit clients without a password.")
    nodelay: bool = Field(
        False, description="Switch off Nagle's algorithm on its sockets (its own default: on)."
    )
    reflect_dscp: bool = Field(
        False,
        description="Mark what it sends on a connection with the DSCP that its client opened it with. The "
        "node's kernel does it (tcp_reflect_tos), for all TCP servers there; mosquitto marks nothing.",
    )
    sys_interval: Span = Field(
        text("0 s"),
        description="Period of its own $SYS messages; 0 s: none, so that captures hold the load only.",
    )
    options: dict[str, str | int | bool] = Field(
        default_factory=dict, description="Further lines of its configuration, name: value."
    )
    ready_within: Span = Field(text("10 s"), description="Deadline for listening on its port.")
    restart: Restart = "never"
    stop_signal: StopSignal = "SIGTERM"

    def services(self) -> Mapping[str, Service]:
        return {PROTOCOL: Service(self.port)}


def _check(report: Checks, here: Here, broker: Broker) -> None:
    for key, value in broker.options.items():
        if not _OPTION.fullmatch(key) or not str(value).isprintable():
            rule = "is not one line of a configuration"
            path = (*here.path, "options", key)
            report.add(path, f"{key} {value}", rule, "write `name: value`, each on one line")


def _plan(_scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    for placed in all_of_it:
        process = _process(placed.node, placed.name, placed.model)
        spec = {REFLECT_DSCP: True} if placed.model.reflect_dscp else {}
        ports: dict[str, tuple[int, ...]] = {PROTOCOL: (placed.model.port,)}
        yield Planned(Software(placed.name, "broker", KIND.name, process, spec=spec, ports=ports))


def _process(node: str, name: str, broker: Broker) -> Process:
    sys_interval_s = broker.sys_interval // 10**9
    configuration = template(TEMPLATE)
    content = configuration.render(node=node, broker=broker, sys_interval_s=sys_interval_s, directory=name)
    path = f"{name}/mosquitto.conf"
    return Process(
        argv=("mosquitto", "-c", path),
        files=(File(path, content),),
        ready=Probe(tcp_port=broker.port, deadline_ns=broker.ready_within),
        restart=broker.restart,
        stop_signal=broker.stop_signal,
    )


def _words(software: Software, _flows: Sequence[Flow]) -> str:
    return f"broker, port {software.ports[PROTOCOL][0]}"


def _costs(_software: Software, _flows: Sequence[Flow]) -> Costs:
    return Costs(memory_bytes=MEMORY_BYTES)


KIND = Kind(
    name="mosquitto",
    key="broker",
    model=Broker,
    what="a broker",
    example="broker: mosquitto",
    check=_check,
    plan=_plan,
    words=_words,
    costs=_costs,
    in_agent=False,
    endpoint=lambda _model: False,
    binds=lambda broker: (Bind("tcp", broker.port, ("port",)),),
    programs=(
        Program(
            "mosquitto",
            "mosquitto",
            ("mosquitto", "-h"),
            "topologies with the broker mosquitto fail in plan",
        ),
    ),
    titles={"Broker": "software.NAME: a broker"},
)
