"""Plans MQTT clients: their sessions, their flows and the expected receivers."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from contract.plan import Delivery, Note, Payload, Session, Software

from ...language.dscp import marks
from ..brokers import name_at, port_at
from ..kind import Planned
from ..placeholders import fill_for
from ..scene import Placed, Scene
from ..sending import make_flow
from .file import PROTOCOL, Absence, MqttOptions, Publish, Subscription, spoken
from .payloads import content_spec, planned_payload
from .reach import reached, receivers
from .requests import requesting, unanswered
from .sessions import client_id, session_spec
from .sparkplug import DATA, node_spec, topic_of
from .subscriptions import Group, Subscribed, Subscriptions, deliveries
from .topics import inner, matches

# Keep-alive intervals without a sign of life after which a broker ends a connection (MQTT 5, 3.1.2.10).
PATIENCE = 1.5
NEVER_NS = 2**63 - 1
_RETAIN_HANDLING = {"always": 0, "new": 1, "never": 2}  # MQTT 5, 3.8.3.1


def plan(scene: Scene, clients: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every MQTT client of the lab, in the order given."""
    subscriptions = Subscriptions.of(one for client in clients for one in _subscribed(scene, client))
    wills = _wills(scene, clients)
    shared = _shared_ids(scene, clients)
    for client in clients:
        mqtt: MqttOptions = client.model.mqtt
        software = _software(scene, client, mqtt, wills.get(_broker(scene, mqtt), ()))
        planned = Planned(software, notes=shared.get(client.endpoint, ()), relay=mqtt.broker)
        yield _publishing(scene, client, planned, subscriptions) if mqtt.publish else planned


def _software(scene: Scene, client: Placed, mqtt: MqttOptions, wills: Sequence[str]) -> Software:
    port = port_at(scene, mqtt.broker, mqtt.port, PROTOCOL)
    patience_ns = None if mqtt.outlives_connections else int(PATIENCE * mqtt.keepalive)
    session = Session(client.endpoint, client.connect_ns, scene.end_ns, patience_ns=patience_ns)
    filters = [fill_for(scene, client, s.topic) for s in mqtt.subscribe]
    spec = {
        "broker": scene.address(mqtt.broker, client.node),
        "port": port,
        "version": mqtt.version,
        "keepalive_s": mqtt.keepalive // 10**9,
        "clean_session": mqtt.clean_session,
        "reconnect_ns": mqtt.reconnect,
        "publish": _sends(scene, client, mqtt.publish) if mqtt.publish else None,
        "subscribe": [_subscription(scene, t, s) for t, s in zip(filters, mqtt.subscribe, strict=True)],
        **session_spec(scene, client, mqtt),
        **_heard(filters, wills),
        **marks(mqtt),
    }
    return Software(
        client.name, "client", client.kind, session=session, spec=spec, ports={spoken(mqtt): (port,)}
    )


def _sends(scene: Scene, client: Placed, wanted: Publish) -> dict[str, Any]:
    """Returns the agent's settings of a publisher, without times and payload, which are in its flow."""
    topic = _topic(scene, client, wanted)
    spec: dict[str, Any] = {
        "topic": topic,
        "qos": wanted.qos,
        "inflight": wanted.inflight,
        "queue": wanted.queue,
    }
    if wanted.retain:
        spec["retain"] = True
    if wanted.topic_alias:
        spec["topic_alias"] = True
    if wanted.message_expiry is not None:
        spec["message_expiry_s"] = wanted.message_expiry // 10**9
    if wanted.user_properties:
        spec["user_properties"] = [list(pair) for pair in wanted.user_properties.items()]
    return spec | content_spec(scene, client, wanted) | node_spec(scene, client, wanted)


def _topic(scene: Scene, client: Placed, wanted: Publish) -> str:
    """Returns the topic of a publisher's messages."""
    node = wanted.sparkplug
    return fill_for(scene, client, wanted.topic if node is None else topic_of(node, DATA))


def _subscription(scene: Scene, topic: str, wanted: Subscription) -> dict[str, Any]:
    spec: dict[str, Any] = {"topic": topic, "qos": wanted.qos}
    if wanted.no_local:
        spec["no_local"] = True
    if wanted.retained != "always":
        spec["retain_handling"] = _RETAIN_HANDLING[wanted.retained]
    if wanted.identifier is not None:
        spec["identifier"] = wanted.identifier
    if wanted.unsubscribed:
        spec["unsubscribed_ns"] = [list(absence(scene, one)) for one in wanted.unsubscribed]
    return spec


def absence(scene: Scene, one: Absence) -> tuple[int, int]:
    """Returns begin and end of a time without a subscription, in ns from the scenario's start; without a
    duration, the end is the largest number of 64 bits.
    """
    begin = scene.at_ns(one.since)
    return begin, NEVER_NS if one.duration is None else begin + one.duration


def _wills(scene: Scene, clients: Sequence[Placed]) -> dict[str, tuple[str, ...]]:
    """Returns the topics of the clients' wills, by broker."""
    found: dict[str, dict[str, None]] = {}
    for client in clients:
        if (will := client.model.mqtt.will) is not None:
            topic = fill_for(scene, client, will.topic)
            found.setdefault(_broker(scene, client.model.mqtt), {})[topic] = None
    return {broker: tuple(topics) for broker, topics in found.items()}


def _heard(filters: Sequence[str], wills: Sequence[str]) -> dict[str, Any]:
    """Returns the agent's setting with the topics of wills that match one of the client's filters, so that
    the client records them; {} if none matches.
    """
    heard = [topic for topic in wills if any(matches(inner(one), topic) for one in filters)]
    return {"wills": heard} if heard else {}


def _shared_ids(scene: Scene, clients: Sequence[Placed]) -> dict[str, tuple[Note, ...]]:
    """Returns a note for the first client of each client id that several clients have at one broker."""
    owners: dict[tuple[str, str], list[Placed]] = {}
    for client in clients:
        key = _broker(scene, client.model.mqtt), client_id(scene, client)
        owners.setdefault(key, []).append(client)
    return {
        same[0].endpoint: (_same_id(same[0], name, broker, len(same)),)
        for (broker, name), same in owners.items()
        if len(same) > 1
    }


def _same_id(first: Placed, name: str, broker: str, count: int) -> Note:
    text = f"{count} clients have the client id {name} at {broker}: each that connects takes over the session"
    return Note(
        f"nodes.{first.node}.{first.name}", text, "write {node} or {index} into `client_id`, or mean it"
    )


def _broker(scene: Scene, mqtt: MqttOptions) -> str:
    return name_at(scene, mqtt.broker, mqtt.port, PROTOCOL)


def _subscribed(scene: Scene, client: Placed) -> Iterator[Subscribed]:
    mqtt: MqttOptions = client.model.mqtt
    for wanted in mqtt.subscribe if mqtt.admission == "accepted" else ():
        topic = fill_for(scene, client, wanted.topic)
        yield Subscribed(
            _broker(scene, mqtt),
            topic,
            wanted.qos,
            client.endpoint,
            client.connect_ns,
            while_session=not mqtt.outlives_connections,
            no_local=wanted.no_local,
            replies=mqtt.version == "5",
        )


def _publishing(scene: Scene, client: Placed, planned: Planned, subscriptions: Subscriptions) -> Planned:
    """Returns the plan of a publisher: its flow, the receivers and groups of receivers that the flow names,
    and a note for each group that cannot be accounted for.
    """
    mqtt: MqttOptions = client.model.mqtt
    wanted = mqtt.publish
    assert wanted is not None
    broker, topic = _broker(scene, mqtt), _topic(scene, client, wanted)
    brokers = list(reached(scene, mqtt.broker, mqtt.port, topic))
    heard, shared = receivers(subscriptions, brokers, topic, client.endpoint)
    groups, mixed = _groups(shared, heard)
    expires = wanted.message_expiry is not None
    owed: dict[Delivery, tuple[str, ...]] = dict(deliveries(broker, topic, wanted.qos, heard, expires))
    owed |= {group.delivery(wanted.qos, expires): (group.name,) for group in groups}
    connects = [one.connect_ns for one in heard]
    connects += [min(one.connect_ns for one in group.members) for group in groups]
    flow = make_flow(
        scene,
        client,
        wanted,
        planned_payload(scene, client, wanted),
        pattern="publish" if wanted.reply is None else "request",
        deliveries=tuple(owed),
        heard_ns=max(connects, default=0),
        topic=topic,
        reply=None if wanted.reply is None else Payload("bytes", wanted.reply),
    )
    notes = (*planned.notes, *(_unaccounted(client, group, topic) for group in mixed))
    if wanted.reply is not None:
        spec = requesting(scene, client, planned.software.spec, len(heard) + len(groups))
        planned = dataclasses.replace(planned, software=dataclasses.replace(planned.software, spec=spec))
        silent = [one.endpoint for one in heard if not one.replies]
        silent += [group.name for group in groups if not all(one.replies for one in group.members)]
        notes = (*notes, *unanswered(client, topic, silent, len(heard) + len(groups)))
    return dataclasses.replace(
        planned,
        flows=(flow,),
        receivers={delivery.receivers: names for delivery, names in owed.items()},
        shared={group.name: group.endpoints for group in groups},
        notes=notes,
    )


def _groups(found: Sequence[Group], heard: Sequence[Subscribed]) -> tuple[list[Group], list[Group]]:
    """Returns the groups that can be accounted for, and the others. In the others, a member has a second
    subscription to the topic, and a received message does not show its subscription.
    """
    ways = Counter([one.endpoint for one in heard])
    ways.update(endpoint for group in found for endpoint in group.endpoints)
    mixed = [group for group in found if any(ways[endpoint] > 1 for endpoint in group.endpoints)]
    return [group for group in found if group not in mixed], mixed


def _unaccounted(client: Placed, group: Group, topic: str) -> Note:
    text = f"{group.name}: a member has another subscription to {topic}, and its messages do not say by which"
    return Note(f"nodes.{client.node}.{client.name}", text, "deliveries to the group have no verdict")
