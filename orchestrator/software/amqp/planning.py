"""Plans AMQP clients: their declarations, their flows and the expected receivers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from contract.plan import Delivery, Flow, Guarantee, Note, Payload, Session, Software

from ...language.dscp import marks
from ..brokers import name_at, port_at
from ..encodings import payload_of
from ..kind import Planned, SoftwareError
from ..placeholders import fill_for
from ..scene import Placed, Scene
from ..sending import make_flow
from ..tcp import PATIENCE_NS as TCP_PATIENCE_NS
from .file import PROTOCOL, AmqpConsume, AmqpOptions, AmqpPublish
from .routing import Consumer, Queues

# Heartbeats without a sign of life after which either side ends a connection (AMQP 0-9-1, 4.2.7).
PATIENCE = 2
DEFAULT_DURABLE = True  # whether the default exchange, which is not declared, is durable


def plan(scene: Scene, clients: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every AMQP client of the lab, in order; raises SoftwareError if two clients declare an exchange
    or queue differently.
    """
    _insist(scene, clients)
    queues = Queues.made(_consumer(scene, one) for one in clients if one.model.amqp.consume is not None)
    for client in clients:
        amqp: AmqpOptions = client.model.amqp
        flows, receivers = _flow(scene, client, amqp.publish, queues) if amqp.publish else ((), {})
        notes = _notes(scene, client, queues)
        yield Planned(_software(scene, client), flows, receivers, tuple(notes), relay=amqp.broker)


def _insist(scene: Scene, clients: Sequence[Placed]) -> None:
    """Raises SoftwareError if two clients declare an exchange or queue differently, which a broker refuses
    (406).
    """
    declared: dict[tuple[str, str, str], tuple[str, str]] = {}
    for client in clients:
        for what, name, how in _declared(scene, client):
            first, at = declared.setdefault((_broker(scene, client), what, name), (how, client.node))
            if first != how:
                rule = f"{client.node} declares the {what} {name} as {how}, {at} as {first}"
                raise SoftwareError(client.node, rule, "write the same `type` and `durable` at both")


def _declared(scene: Scene, client: Placed) -> Iterator[tuple[str, str, str]]:
    amqp: AmqpOptions = client.model.amqp
    for wanted in (amqp.publish, amqp.consume):
        if wanted is not None and wanted.exchange:
            yield (
                "exchange",
                fill_for(scene, client, wanted.exchange),
                f"{wanted.type}, {_durable(wanted.durable)}",
            )
    if amqp.consume is not None and amqp.consume.queue:
        yield "queue", fill_for(scene, client, amqp.consume.queue), _durable(amqp.consume.durable)


def _durable(durable: bool) -> str:
    return "durable" if durable else "not durable"


def _software(scene: Scene, client: Placed) -> Software:
    amqp: AmqpOptions = client.model.amqp
    port = port_at(scene, amqp.broker, amqp.port, PROTOCOL)
    patience_ns = None if _kept(amqp.consume) else (PATIENCE * amqp.heartbeat or TCP_PATIENCE_NS)
    session = Session(client.endpoint, client.connect_ns, scene.end_ns, patience_ns=patience_ns)
    spec = {
        "broker": scene.address(amqp.broker, client.node),
        "port": port,
        "vhost": amqp.vhost,
        "user": amqp.user,
        "password": amqp.password,
        "heartbeat_s": amqp.heartbeat // 10**9,
        "reconnect_ns": amqp.reconnect,
        "publish": _sends(scene, client, amqp.publish) if amqp.publish else None,
        "consume": _receives(scene, client, amqp.consume) if amqp.consume else None,
        **marks(amqp),
    }
    return Software(client.name, "client", client.kind, session=session, spec=spec, ports={PROTOCOL: (port,)})


def _kept(consume: AmqpConsume | None) -> bool:
    """Returns whether the queue keeps unacknowledged messages until the consumer connects again; False
    without a consumer.
    """
    return consume is not None and consume.queue != "" and consume.durable and consume.acknowledge


def _exchange(scene: Scene, client: Placed, wanted: AmqpPublish | AmqpConsume) -> dict[str, Any]:
    return {
        "name": fill_for(scene, client, wanted.exchange),
        "type": wanted.type,
        "durable": wanted.durable if wanted.exchange else DEFAULT_DURABLE,
    }


def _sends(scene: Scene, client: Placed, wanted: AmqpPublish) -> dict[str, Any]:
    """Returns the agent's settings of a publisher, without times and payload, which are in its flow."""
    return {
        "exchange": _exchange(scene, client, wanted),
        "key": fill_for(scene, client, wanted.key),
        "persistent": wanted.persistent,
        "confirms": wanted.confirms,
        "inflight": wanted.inflight,
        "queue": wanted.queue,
    }


def _receives(scene: Scene, client: Placed, wanted: AmqpConsume) -> dict[str, Any]:
    return {
        "exchange": _exchange(scene, client, wanted),
        "keys": list(_keys(scene, client, wanted)),
        "queue": fill_for(scene, client, wanted.queue),
        "durable": wanted.durable,
        "prefetch": wanted.prefetch if wanted.acknowledge else 0,
        "acknowledge": wanted.acknowledge,
    }


def _keys(scene: Scene, client: Placed, wanted: AmqpConsume) -> tuple[str, ...]:
    """Returns the consumer's binding keys with placeholders filled in; without keys one empty key if there
    is an exchange, because a fanout binding has a key although the exchange ignores it.
    """
    keys = wanted.keys or ([""] if wanted.exchange else [])
    return tuple(fill_for(scene, client, key) for key in keys)


def _broker(scene: Scene, client: Placed) -> str:
    amqp: AmqpOptions = client.model.amqp
    at = name_at(scene, amqp.broker, amqp.port, PROTOCOL)
    return at if amqp.vhost == "/" else f"{at} {amqp.vhost}"


def _consumer(scene: Scene, client: Placed) -> Consumer:
    wanted: AmqpConsume = client.model.amqp.consume
    return Consumer(
        _broker(scene, client),
        client.endpoint,
        client.connect_ns,
        fill_for(scene, client, wanted.exchange),
        wanted.type,
        _keys(scene, client, wanted),
        fill_for(scene, client, wanted.queue),
        wanted.durable,
        wanted.acknowledge,
    )


def _flow(
    scene: Scene, client: Placed, wanted: AmqpPublish, queues: Queues
) -> tuple[tuple[Flow], dict[str, tuple[str, ...]]]:
    """Returns the publisher's flow, and the endpoints of each set of receivers: consumers with a queue of
    their own. Consumers that share a queue are not expected receivers, since each message reaches only one
    of them.
    """
    broker, key = _broker(scene, client), fill_for(scene, client, wanted.key)
    exchange = fill_for(scene, client, wanted.exchange)
    reached = queues.to(broker, exchange, key)
    alone = [consumers[0] for consumers in reached if len(consumers) == 1]
    guaranteed: dict[Guarantee, list[str]] = {}
    for one in sorted(alone, key=lambda one: one.endpoint):
        guaranteed.setdefault(guarantee(wanted, one), []).append(one.endpoint)
    place = f"{exchange or 'queue'} {key} at {broker}"
    owed = {
        Delivery(place if len(guaranteed) == 1 else f"{place}: {made.name}", made): tuple(names)
        for made, names in guaranteed.items()
    }
    flow = make_flow(
        scene,
        client,
        wanted,
        payload_of(wanted, Payload(wanted.payload, wanted.payload_size)),
        pattern="publish",
        deliveries=tuple(owed),
        heard_ns=max((one.connect_ns for consumers in reached for one in consumers), default=0),
        topic=key,
    )
    return (flow,), {delivery.receivers: names for delivery, names in owed.items()}


def guarantee(wanted: AmqpPublish, consumer: Consumer) -> Guarantee:
    """Returns the delivery guarantee of a publisher's messages at one consumer.
    With confirms no message is lost, but messages may be repeated. Without confirms nothing is guaranteed,
    or, if the consumer does not acknowledge either, no message arrives twice. The guarantee outlasts
    connections only if the queue has a name and is durable, messages are persistent, and the consumer
    acknowledges.
    """
    kept = consumer.queue != "" and consumer.durable and wanted.persistent and consumer.acknowledge
    confirmed = "confirmed" if wanted.confirms else "unconfirmed"
    name = f"{confirmed}, {'acknowledged' if consumer.acknowledge else 'automatic'}{', kept' if kept else ''}"
    if wanted.confirms:
        return Guarantee(
            name, f"{name}: at least once, so no message is lost", lossless=True, while_session=not kept
        )
    if consumer.acknowledge:
        return Guarantee(name, f"{name}: nothing is guaranteed", while_session=not kept)
    return Guarantee(
        name, f"{name}: at most once, so no message is delivered twice", single=True, while_session=True
    )


def _notes(scene: Scene, client: Placed, queues: Queues) -> Iterator[Note]:
    wanted: AmqpConsume | None = client.model.amqp.consume
    if wanted is None or not wanted.queue:
        return
    queue = fill_for(scene, client, wanted.queue)
    if len(queues.of[_broker(scene, client), queue]) > 1:
        text = f"it shares the queue {queue}: which of its consumers gets a message is the broker's choice"
        yield Note(f"nodes.{client.node}.{client.name}", text, "deliveries to them have no verdict")
