"""What brokers offer to clients of a protocol: where they speak it, and what of it they cannot do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..language.scalars import Base
from ..language.source import Path
from .checking import Checks, Here, joined
from .scene import Scene


@dataclass(frozen=True, slots=True)
class Service:
    """A protocol that a broker speaks on a port of its node."""

    port: int
    lacks: Mapping[str, str] = field(default_factory=dict)  # feature, as the protocol's room calls it -> why


class Serving(Base):
    """A broker of the file."""

    @abstractmethod
    def services(self) -> Mapping[str, Service]:
        """By protocol, as the reducer calls it."""


def offered(models: Iterable[object], protocol: str) -> list[Service]:
    """Where brokers among the software of a node speak a protocol."""
    found = (model.services().get(protocol) for model in models if isinstance(model, Serving))
    return [service for service in found if service is not None]


def services_at(scene: Scene, node: str, protocol: str) -> list[Service]:
    """As `offered`, of a node of the plan."""
    return offered((placed.model for placed in scene.placed[node]), protocol)


def check_broker(
    report: Checks, here: Here, path: Path, node: str, port: int | None, protocol: str, example: str
) -> Service | None:
    """The service of `node` that a client asks for; reports where there is none, or where it cannot be told.

    path: of the key that names the node. example: broker software that speaks the protocol, a line of a file.
    None: an unknown node, or a port that no broker of ours has.
    """
    if not report.node(path, node):
        return None
    found = offered(report.programs(node).values(), protocol)
    if not found and port is None:
        rule = f"no broker runs on this node that speaks {protocol}, so its port is not known"
        report.add(path, node, rule, f"write `software: {example}` there, or `port:` here")
    if port is None and len(found) > 1:
        report.add(path, node, "more than one broker runs on this node", "write `port:`")
    joined(report, here, path, node, node)
    return next((service for service in found if port in (None, service.port)), None)


def check_features(
    report: Checks, service: Service | None, node: str, used: Iterable[tuple[Path, str, str]]
) -> None:
    """Reports what a client uses and its broker lacks; `used`: place, feature, what to write instead."""
    for path, feature, remedy in used:
        if service is not None and (why := service.lacks.get(feature)):
            report.add(path, feature, f"the broker of {node} cannot do it: {why}", remedy)


def port_at(scene: Scene, node: str, port: int | None, protocol: str) -> int:
    """The port that a client speaks to; checks have seen that there is one."""
    return port if port is not None else services_at(scene, node, protocol)[0].port


def name_at(scene: Scene, node: str, port: int | None, protocol: str) -> str:
    """A broker's name in sets of receivers: its node's, with a port where that tells two apart."""
    several = len(services_at(scene, node, protocol)) > 1
    return f"{node}:{port_at(scene, node, port, protocol)}" if several else node
