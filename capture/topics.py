"""MQTT topic filters, and who is to get a message by the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl


def matches(topic_filter: str, topic: str) -> bool:
    """Whether a subscription to `topic_filter` gets messages of `topic` (MQTT 5, section 4.7)."""
    wanted, levels = topic_filter.split("/"), topic.split("/")
    if topic.startswith("$") and wanted[0] in ("+", "#"):
        return False
    for place, level in enumerate(wanted):
        if level == "#":
            return True
        if place >= len(levels) or level not in ("+", levels[place]):
            return False
    return len(wanted) == len(levels)


@dataclass(frozen=True, slots=True)
class Client:
    """An MQTT client of the plan; `subscriptions` are (filter, qos)."""

    node: str
    client_id: str
    clean_session: bool
    keepalive_s: int
    subscriptions: tuple[tuple[str, int], ...]


def clients(plan: dict[str, Any]) -> tuple[Client, ...]:
    """The plan's MQTT clients, from plan.json as read."""
    return tuple(_clients(plan))


def _clients(plan: dict[str, Any]) -> Iterator[Client]:
    for node in plan["nodes"]:
        for software in node["software"]:
            if (mqtt := software.get("mqtt")) is not None:
                subscriptions = tuple((wanted["topic"], wanted["qos"]) for wanted in mqtt["subscribe"])
                yield Client(
                    node["name"], mqtt["client_id"], mqtt["clean_session"], mqtt["keepalive_s"], subscriptions
                )


def named(found: Iterable[Client], names: set[str]) -> dict[str, Client]:
    """The clients by the name that the records use: client id, or the node's name where those fit better."""
    by_id = {client.client_id: client for client in found}
    by_node = {client.node: client for client in by_id.values()}
    return by_node if len(names & by_node.keys()) > len(names & by_id.keys()) else by_id


def shared(found: Iterable[Client]) -> list[str]:
    """Clients with a shared subscription: of those no message can be expected."""
    return [c.client_id for c in found if any(wanted.startswith("$share/") for wanted, _ in c.subscriptions)]


def expected(by_name: dict[str, Client], topics: Iterable[str]) -> pl.DataFrame:
    """One row a topic and client subscribed to it: topic, subscriber, granted (its greatest QoS)."""
    exact: dict[str, list[tuple[str, int]]] = {}
    wild: list[tuple[str, str, int]] = []
    for name, client in by_name.items():
        for wanted, qos in client.subscriptions:
            if "+" in wanted or "#" in wanted:
                wild.append((wanted, name, qos))
            else:
                exact.setdefault(wanted, []).append((name, qos))
    rows = [
        (topic, name, qos)
        for topic in topics
        for name, qos in [*exact.get(topic, []), *((n, q) for w, n, q in wild if matches(w, topic))]
    ]
    schema = {"topic": pl.String, "subscriber": pl.String, "granted": pl.Int64}
    return (
        pl.DataFrame(rows, schema=schema, orient="row")
        .group_by("topic", "subscriber")
        .agg(pl.col("granted").max())
    )
