"""Defines the keys, checks and plan that brokers of `images/brokers/build.sh` share: one port of MQTT, one
configuration file, a program in the foreground.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import Field

from contract.plan import File, Flow, Probe, Process, Program, Software

from ...language.scalars import Port, Span, text
from ...language.templates import render
from ..brokers import Service, Serving, check_own_setup
from ..checking import Checks, Here
from ..kind import Bind, Costs, Kind, Planned
from ..mqtt.file import PROTOCOL
from ..program_texts import filled_env, filled_files, filling
from ..programs import Restart, StopSignal
from ..scene import Placed, Scene

# images/brokers/build.sh installs the brokers there, each in a directory of its own
PLACE = "/usr/local/lib/vnet/brokers"
ONLY_OLD = {"version 5": "it speaks MQTT 3.1.1 only", "a shared subscription": "MQTT 3.1.1 has none"}


class BuiltBroker(Serving):
    """The base of the models of these brokers."""

    lacks: ClassVar[Mapping[str, str]] = {}  # feature -> the reason why the broker lacks it
    rendered: ClassVar[frozenset[str]] = frozenset()  # keys that affect only the rendered configuration

    port: Port = Field(1883, description="TCP port of the broker, on all addresses of its node.")
    ready_within: Span = Field(text("30 s"), description="Deadline until the broker listens on its port.")
    restart: Restart = "never"
    stop_signal: StopSignal = "SIGTERM"

    def missing(self) -> Mapping[str, str]:
        """Returns the features that the broker lacks if it has these keys, each with the reason."""
        return self.lacks

    def admitted(self) -> dict[str, str] | None:
        """Returns the only users that the broker admits; None if it may admit others."""
        return None

    def services(self) -> Mapping[str, Service]:
        own = self.config is not None
        return {PROTOCOL: Service(self.port, self.missing(), self.admitted(), own_config=own)}


@dataclass(frozen=True, slots=True)
class Start:
    """The command that starts a broker, its environment and its files; `config` is the rendered text of the
    file `config_path`, which a `config` of the topology replaces.
    """

    argv: tuple[str, ...]
    config_path: str
    config: str
    env: Mapping[str, str] = field(default_factory=dict)
    files: tuple[File, ...] = ()


def make_kind(
    model: type[BuiltBroker],
    name: str,
    title: str,
    start: Callable[[Scene, Placed], Start],
    program: str,
    memory_bytes: int,
    interpreter: tuple[str, str] | None = None,
    real_time: str = "",
    own_check: Callable[[Checks, Here, Any], None] | None = None,
) -> Kind:
    """Returns the registry entry of a broker. `start` returns the command and configuration of one in the
    lab; `program` is the path of its file below PLACE; `interpreter` is a program that it needs, with its
    Debian package; `own_check` reports further mistakes of this broker.
    """
    build = f"images/brokers/build.sh {name}"
    without = f"topologies with the broker {name} fail in plan"
    # The command prints the version that was built, because not all programs print theirs.
    version = ("cat", f"{PLACE}/{name}/version")
    needed: tuple[Program, ...] = (
        Program(f"{PLACE}/{program}", "", version, without, build, f"{PLACE}/{name}"),
    )
    if interpreter is not None:
        command, package = interpreter
        needed += (Program(command, package, (command, "--version"), without),)

    def check(report: Checks, here: Here, broker: BuiltBroker) -> None:
        check_own_setup(report, here.path, broker, broker.rendered)
        if own_check is not None:
            own_check(report, here, broker)
        image = report.image(here.nodes[0])
        if image is not None:
            rule = f"the image {image} has no {name}"
            report.add(here.path, None, rule, "write `kind: light` at the node, or start it by `command`")

    def plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
        for placed in all_of_it:
            values = scene.values(placed.node)
            with filling(placed.node):
                process = _process(values, start(scene, placed), placed.model)
            yield Planned(
                Software(placed.name, "broker", name, process, ports={PROTOCOL: (placed.model.port,)})
            )

    def words(software: Software, _flows: Sequence[Flow]) -> str:
        return f"broker, port {software.ports[PROTOCOL][0]}"

    return Kind(
        name=name,
        key="broker",
        model=model,
        what="a broker",
        example=f"broker: {name}",
        check=check,
        plan=plan,
        words=words,
        costs=lambda _software, _flows: Costs(memory_bytes=memory_bytes),
        in_agent=False,
        endpoint=lambda _model: False,
        binds=lambda broker: (Bind("tcp", broker.port, ("port",)),),
        programs=needed,
        real_time=real_time,
        titles={model.__name__: f"software.NAME: the broker {title}"},
    )


def _process(values: dict[str, Any], start: Start, broker: BuiltBroker) -> Process:
    config = start.config if broker.config is None else render(broker.config, values)
    argv = start.argv if broker.program is None else (broker.program, *start.argv[1:])
    return Process(
        argv=argv,
        env={**start.env, **filled_env(broker.env, values)},
        files=(File(start.config_path, config), *start.files, *filled_files(broker.files, values)),
        ready=Probe(tcp_port=broker.port, deadline_ns=broker.ready_within),
        restart=broker.restart,
        stop_signal=broker.stop_signal,
    )
