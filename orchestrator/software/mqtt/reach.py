"""Finds the brokers at which a message arrives: the publisher's broker, and the brokers to which bridges and
clusters forward the message.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ..brokers import forwards_at, name_at, port_at
from ..scene import Scene
from .file import PROTOCOL
from .subscriptions import Group, Subscribed, Subscriptions
from .topics import matches

HIGHEST_QOS = 2


def reached(scene: Scene, node: str, port: int | None, topic: str) -> Iterator[tuple[str, int]]:
    """Yields the name of each broker at which a message of this topic arrives, and the highest QoS on the way
    there, that of the publisher first. Only the first way to a broker counts, since a second one brings a
    second copy.
    """
    start = node, port_at(scene, node, port, PROTOCOL)
    qos_at, waiting = {start: HIGHEST_QOS}, [start]
    while waiting:
        here = waiting.pop(0)
        yield name_at(scene, *here, PROTOCOL), qos_at[here]
        for forward in forwards_at(scene, *here, PROTOCOL):
            there = forward.to, port_at(scene, forward.to, forward.port, PROTOCOL)
            if there not in qos_at and matches(forward.topic, topic):
                qos_at[there] = min(qos_at[here], forward.level)
                waiting.append(there)


def receivers(
    found: Subscriptions, brokers: list[tuple[str, int]], topic: str, sender: str
) -> tuple[list[Subscribed], list[Group]]:
    """Returns the subscriptions and the shared groups for a topic at these brokers, each with a QoS that is
    not above the QoS on the way to its broker.
    """
    heard = [_at_most(one, qos) for broker, qos in brokers for one in found.to(broker, topic, sender)]
    groups = [
        Group(group.name, tuple(_at_most(one, qos) for one in group.members))
        for broker, qos in brokers
        for group in found.shared(broker, topic)
    ]
    return heard, groups


def _at_most(one: Subscribed, qos: int) -> Subscribed:
    return dataclasses.replace(one, qos=min(one.qos, qos))
