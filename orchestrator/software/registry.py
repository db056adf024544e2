"""Lists the kinds of software by name. A new kind of vNET is a module and a line here; others come from
plug-ins.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from contract.plan import Program
from contract.plugins import Registry

from .kind import Kind


@dataclass(frozen=True, slots=True)
class KindModule:
    """The module of a kind and its key in files, which are known before the module is imported."""

    module: str
    key: str
    entry: str = "KIND"

    def enter(self) -> Kind:
        kind: Kind = getattr(importlib.import_module(f".{self.module}", __package__), self.entry)
        return kind


MODULES = {
    "mosquitto": KindModule("mosquitto", "broker"),
    "rabbitmq": KindModule("rabbitmq.kind", "broker"),
    "mochi": KindModule("mqtt_brokers.mochi", "broker"),
    "rumqttd": KindModule("mqtt_brokers.rumqttd", "broker"),
    "aedes": KindModule("mqtt_brokers.aedes", "broker"),
    "amqtt": KindModule("mqtt_brokers.amqtt", "broker"),
    "moquette": KindModule("mqtt_brokers.moquette", "broker"),
    "nats-server": KindModule("nats.broker", "broker"),
    "mqtt": KindModule("mqtt.kind", "mqtt"),
    "command": KindModule("command.kind", "command"),
    "frames": KindModule("frames.kind", "frames"),
    "udp": KindModule("udp", "udp"),
    "tcp": KindModule("tcp", "tcp"),
    "http": KindModule("http", "http"),
    "coap": KindModule("coap", "coap"),
    "bulk": KindModule("bulk", "bulk"),
    "zeromq": KindModule("zeromq.kind", "zeromq"),
    "frr": KindModule("frr.kind", "frr"),
    "amqp": KindModule("amqp.kind", "amqp"),
    "nats": KindModule("nats.client", "nats"),
    "sampled-values": KindModule("sampled_values", "sampled-values"),
    "goose": KindModule("goose", "goose"),
    "synchrophasor": KindModule("synchrophasor", "synchrophasor"),
    "middleware": KindModule("middleware.kind", "middleware"),
    "ftp": KindModule("ftp.kind", "ftp"),
    "adaptive": KindModule("adaptive.kind", "adaptive"),
    "gateway": KindModule("gateway.kind", "gateway"),
    "reservations": KindModule("gateway.kind", "reservations", "BROKER"),
    "station": KindModule("station.kind", "station"),
    "nat": KindModule("nat.kind", "nat"),
    "dhcp": KindModule("dhcp.kind", "dhcp"),
    "dhcp-client": KindModule("dhcp.kind", "dhcp-client", "CLIENT_KIND"),
    "dns": KindModule("dns.kind", "dns"),
    "advertise": KindModule("slaac.kind", "advertise"),
    "slaac": KindModule("slaac.kind", "slaac", "HOST_KIND"),
    "wireguard": KindModule("wireguard.kind", "wireguard"),
    "dhcp6": KindModule("dhcp6.kind", "dhcp6"),
    "dhcp6-client": KindModule("dhcp6.kind", "dhcp6-client", "CLIENT_KIND"),
}


class _Own(Mapping[str, Kind]):
    """Maps names to vNET's own kinds. Imports the module of a kind on first use, because most files need one
    or two kinds, and all kinds together are a third of what a command loads.
    """

    def __init__(self) -> None:
        self.entered: dict[str, Kind] = {}

    def __getitem__(self, name: str) -> Kind:
        if name not in self.entered:
            self.entered[name] = MODULES[name].enter()
        return self.entered[name]

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)

    def __contains__(self, name: object) -> bool:
        return name in MODULES


_KEYS = Counter(module.key for module in MODULES.values())
SHARED = frozenset(key for key, kinds in _KEYS.items() if kinds > 1)  # keys whose value selects the kind


def _fault(name: str, kind: Kind) -> str:
    if kind.name != name:
        return f"its kind is named {kind.name!r}; name the entry point so"
    if kind.key != name and kind.key not in SHARED:
        return f"its key in files is {kind.key!r}; make it {name!r} or one of {', '.join(sorted(SHARED))}"
    return ""


class Kinds(Registry[Kind]):
    """Maps names to kinds of software, vNET's own and those of plug-ins."""

    def __init__(self) -> None:
        self._own = _Own()
        super().__init__("vnet.software", self._own, Kind, _fault)
        self._of_model: dict[type, Kind] = {}

    def of(self, model: Any) -> Kind:
        """Returns the kind whose model class this model has; searches kinds already imported first."""
        if (found := self._of_model.get(type(model))) is None:
            at_hand = [*self._own.entered.values(), *(kind for _, kind in self.loaded.values())]
            found = next(kind for kind in chain(at_hand, self.values()) if type(model) is kind.model)
            self._of_model[type(model)] = found
        return found


KINDS = Kinds()


def kind_of(model: Any) -> Kind:
    """Returns the kind of a piece of software, given as the model that was read from the file."""
    return KINDS.of(model)


def session_names(name: str, model: Any) -> tuple[str, ...]:
    """Returns the names of a piece of software's sessions: NAME-1, NAME-2 and so on; NAME if it has one."""
    count = kind_of(model).sessions(model)
    return (name,) if count == 1 else tuple(f"{name}-{number}" for number in range(1, count + 1))


def endpoints(node: str, software: Mapping[str, Any]) -> dict[str, str]:
    """Returns the name in records of each recorded software of a node: It is only the node's name if there is
    only one. Software with several sessions has a name for each.
    """
    recorded = [
        each
        for name, model in software.items()
        if kind_of(model).endpoint(model)
        for each in session_names(name, model)
    ]
    return {name: node if len(recorded) == 1 else f"{node}-{name}" for name in recorded}


def programs() -> Iterator[Program]:
    """Yields each program that some kind needs, once, as described by the first kind that needs it."""
    found: dict[str, Program] = {}
    for program in (program for kind in KINDS.values() for program in kind.programs):
        found.setdefault(program.name, program)
    yield from found.values()
