"""Defines the keys of the broker mosquitto, and checks and plans it: a program in the foreground, with a
configuration rendered for its node.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from contract.plan import REFLECT_DSCP, File, Flow, Probe, Process, Program, Software

from ..language.scalars import Port, Span, text
from ..language.templates import render
from .brokers import Forward, Service, Serving, check_own_setup, port_at
from .checking import Checks, Here
from .kind import Bind, Costs, Kind, Planned
from .mosquitto_bridges import Bridge, check_bridges, forwards, lines
from .mqtt.file import CARRIERS, PROTOCOL, spoken
from .program_texts import filled_env, filled_files, filling
from .programs import Restart, StopSignal, template
from .scene import Placed, Scene
from .tls.checks import check_tls
from .tls.file import BrokerTlsKey
from .tls.lab import server_files

# Memory from bench/memory.py: 3.5 to 4 MB with 350 clients that each publish 0.3 messages/s.
MEMORY_BYTES = 4_000_000
TEMPLATE = Path(__file__).parent / "mosquitto.conf.j2"
_OPTION = re.compile(r"[a-z][a-z0-9_]*")
_LISTENER = re.compile(r"^\s*(?:listener|port)\s+([0-9]+)", re.MULTILINE)
_RENDERED = frozenset({
    "persistence", "max_inflight_messages", "max_queued_messages", "users", "allow_anonymous", "nodelay",
    "sys_interval", "bridges",
})  # fmt: skip
HASH_ROUNDS = 101  # the default of mosquitto_passwd, PW_DEFAULT_ITERATIONS


class Broker(Serving):
    """An MQTT broker, started in the foreground with a configuration rendered for this node."""

    broker: Literal["mosquitto"] = Field(description="The broker program.")
    port: Port = Field(1883, description="TCP port of the broker, on all addresses of its node.")
    tls: BrokerTlsKey = None
    websocket: bool = Field(False, description="Speak MQTT over WebSocket, and nothing else, on `port`.")
    persistence: bool = Field(False, description="Keep sessions and queued messages across restarts.")
    max_inflight_messages: int = Field(
        20, ge=0, le=65535, description="Limit on unacknowledged messages per client; 0: no limit."
    )
    max_queued_messages: int = Field(
        1000, ge=0, le=2**31 - 1, description="Limit on messages queued per client; 0: no limit."
    )
    users: dict[str, str] = Field(
        default_factory=dict, description="User: password, of the users that the broker admits."
    )
    allow_anonymous: bool | None = Field(
        None, description="Admit clients without a password; by default only where there are no `users`."
    )
    nodelay: bool = Field(
        False, description="Switch off Nagle's algorithm on the broker's sockets (mosquitto's default: on)."
    )
    reflect_dscp: bool = Field(
        False,
        description=(
            "Mark the broker's packets on a connection with the DSCP with which the client opened it. The "
            "node's kernel does it (tcp_reflect_tos), for all TCP servers there; mosquitto marks nothing."
        ),
    )
    sys_interval: Span = Field(
        text("0 s"),
        description="Period of the broker's $SYS messages; 0 s: none, so that captures hold the load only.",
    )
    bridges: list[Bridge] = Field(
        default_factory=list, description="Brokers at which this broker publishes messages, too."
    )
    options: dict[str, str | int | bool] = Field(
        default_factory=dict, description="Further lines of the broker's configuration, name: value."
    )
    ready_within: Span = Field(text("10 s"), description="Deadline until the broker listens on its port.")
    restart: Restart = "never"
    stop_signal: StopSignal = "SIGTERM"

    def services(self) -> Mapping[str, Service]:
        users = self.users if self.users and not self.allow_anonymous else None
        own = self.config is not None
        return {
            PROTOCOL: Service(self.port, users=users, tls=self.tls, websocket=self.websocket, own_config=own)
        }

    def forwards(self, node: str) -> tuple[Forward, ...]:
        return forwards(self.bridges)

    @property
    def anonymous(self) -> bool:
        """Returns whether the rendered configuration admits clients without a password: `allow_anonymous`,
        or, if that is left out, whether there are no `users`.
        """
        return not self.users if self.allow_anonymous is None else self.allow_anonymous


def _check(report: Checks, here: Here, broker: Broker) -> None:
    check_own_setup(report, here.path, broker, _RENDERED)
    _users(report, here, broker)
    check_bridges(report, here, broker.bridges)
    if broker.tls is not None:
        check_tls(report, (*here.path, "tls"), broker.tls)
        if broker.tls.ca is not None and not broker.tls.mutual and broker.config is None:
            rule = "is used only to admit clients by their certificates"
            remedy = "write `mutual: true`, or leave it out"
            report.add((*here.path, "tls", "ca"), str(broker.tls.ca), rule, remedy)
    if broker.config is not None:
        _own_config(report, here, broker, broker.config)
    for key, value in broker.options.items():
        if not _OPTION.fullmatch(key) or not str(value).isprintable():
            rule = "is not one line of a configuration"
            path = (*here.path, "options", key)
            report.add(path, f"{key} {value}", rule, "write `name: value`, each on one line")


def _users(report: Checks, here: Here, broker: Broker) -> None:
    """Reports user names that mosquitto's password file cannot hold: empty ones, and names with a colon, a
    leading #, blanks at an end or unprintable characters (src/security_default.c, pwfile__parse).
    """
    for name in broker.users:
        if not name or name != name.strip() or name[0] == "#" or ":" in name or not name.isprintable():
            rule = "is no user name: mosquitto's password file has one user a line, NAME:HASH"
            report.add((*here.path, "users", name), name, rule, "write a name without colon, # and blanks")


def _own_config(report: Checks, here: Here, broker: Broker, config: str) -> None:
    """Reports the broker's port if the user's configuration opens ports, but not this one. Does not check a
    configuration with template expressions.
    """
    ports = {int(port) for port in _LISTENER.findall(config)}
    if ports and broker.port not in ports and "{" not in config:
        rule = f"`config` listens on {', '.join(map(str, sorted(ports)))} only"
        report.add((*here.path, "port"), broker.port, rule, "write the port of a listener")


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    for placed in all_of_it:
        with filling(placed.node):
            process = _process(scene, placed, placed.model)
        spec = {REFLECT_DSCP: True} if placed.model.reflect_dscp else {}
        ports: dict[str, tuple[int, ...]] = {spoken(placed.model): (placed.model.port,)}
        yield Planned(Software(placed.name, "broker", KIND.name, process, spec=spec, ports=ports))


def _process(scene: Scene, placed: Placed, broker: Broker) -> Process:
    values, path = scene.values(placed.node), f"{placed.name}/mosquitto.conf"
    config = (
        _rendered(scene, placed, broker) if broker.config is None else _own(broker, broker.config, values)
    )
    files = [File(path, config)]
    if broker.users:
        files.append(File(f"{placed.name}/users", _password_file(scene, placed, broker.users), 0o600))
    if broker.tls is not None:
        files += server_files(scene, placed, broker.tls)
    return Process(
        argv=(broker.program or "mosquitto", "-c", path),
        env=filled_env(broker.env, values),
        files=(*files, *filled_files(broker.files, values)),
        ready=Probe(tcp_port=broker.port, deadline_ns=broker.ready_within),
        restart=broker.restart,
        stop_signal=broker.stop_signal,
    )


def _rendered(scene: Scene, placed: Placed, broker: Broker) -> str:
    ports = {one.to: port_at(scene, one.to, one.port, PROTOCOL) for one in broker.bridges}
    text: str = template(TEMPLATE).render(
        node=placed.node,
        broker=broker,
        sys_interval_s=broker.sys_interval // 10**9,
        directory=placed.name,
        options=[*_options(broker), *lines(scene, placed.node, broker.bridges, ports)],
    )
    return text


def _own(broker: Broker, config: str, values: dict[str, Any]) -> str:
    """Returns the file's own configuration, followed by the `options`."""
    return "\n".join((render(config, values).rstrip("\n"), *_options(broker), ""))


def _options(broker: Broker) -> list[str]:
    values = {
        key: str(value).lower() if isinstance(value, bool) else value for key, value in broker.options.items()
    }
    return [f"{key} {value}" for key, value in values.items()]


def _password_file(scene: Scene, placed: Placed, users: Mapping[str, str]) -> str:
    """Returns mosquitto's password file: `NAME:$7$ROUNDS$SALT$HASH`, PBKDF2 with SHA-512; the salts follow
    from the lab's seed.
    """
    lines = []
    for name, password in users.items():
        salt = scene.seed_for("salt", placed.node, placed.name, name).to_bytes(12, "big")
        digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, HASH_ROUNDS)
        salt_text, hash_text = (base64.b64encode(part).decode() for part in (salt, digest))
        lines.append(f"{name}:$7${HASH_ROUNDS}${salt_text}${hash_text}\n")
    return "".join(lines)


def _words(software: Software, _flows: Sequence[Flow]) -> str:
    ((protocol, ports),) = software.ports.items()
    return f"broker, {CARRIERS[protocol]}port {ports[0]}"


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
    titles={
        "Broker": "software.NAME: a broker",
        "BrokerTls": "software.NAME.tls: TLS of a broker",
        "Bridge": "software.NAME.bridges[]: bridges of mosquitto",
        "BridgedTopic": "bridges[].topics[]",
    },
)
