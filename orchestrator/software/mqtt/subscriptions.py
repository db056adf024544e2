"""Finds the receivers and the delivery guarantee of each MQTT message by matching topic filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from contract.plan import Delivery, Guarantee

from .topics import SHARED, matches

_RULES = {
    0: "QoS 0: at most once, so no message is delivered twice",
    1: "QoS 1: at least once, so no message is lost",
    2: "QoS 2: exactly once, so no message is lost or delivered twice",
}


@dataclass(frozen=True, slots=True)
class Subscribed:
    """One subscription of a client: its broker's name, and its topic filter with placeholders filled in."""

    broker: str
    topic: str
    qos: int
    endpoint: str
    connect_ns: int
    while_session: bool  # whether a lost connection may end the session
    no_local: bool = False


@dataclass
class Subscriptions:
    """All subscriptions of a lab; filters without wildcards are found by a dictionary look-up. A shared
    subscription matches no topic here, since each message reaches only one of its subscribers.
    """

    exact: dict[tuple[str, str], list[Subscribed]] = field(default_factory=dict)
    wild: dict[str, list[Subscribed]] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Iterable[Subscribed]) -> Subscriptions:
        made = cls()
        for one in found:
            if any(sign in one.topic for sign in "+#"):
                made.wild.setdefault(one.broker, []).append(one)
            elif not one.topic.startswith(SHARED):
                made.exact.setdefault((one.broker, one.topic), []).append(one)
        return made

    def to(self, broker: str, topic: str, sender: str) -> list[Subscribed]:
        """Returns the subscriptions that match a topic of `sender`, one for each client: the one with the
        highest QoS. Leaves out the sender's own subscriptions with `no_local`.
        """
        found = [
            *self.exact.get((broker, topic), ()),
            *(one for one in self.wild.get(broker, ()) if matches(one.topic, topic)),
        ]
        found = [one for one in found if not (one.no_local and one.endpoint == sender)]
        return list({one.endpoint: one for one in sorted(found, key=lambda one: one.qos)}.values())


def deliveries(
    broker: str, topic: str, qos: int, subscribers: Iterable[Subscribed], expires: bool = False
) -> Iterator[tuple[Delivery, tuple[str, ...]]]:
    """Yields each delivery guarantee with its set of receivers; a single one if all receivers have the same.

    A message is delivered with the lower QoS of publication and subscription (MQTT 3.1.1, section 4.3).
    """
    guaranteed: dict[Guarantee, list[str]] = {}
    for one in sorted(subscribers, key=lambda one: one.endpoint):
        guaranteed.setdefault(guarantee(min(qos, one.qos), one.while_session, expires), []).append(
            one.endpoint
        )
    place = f"{topic} at {broker}"
    for made in sorted(guaranteed, key=lambda made: (made.name, made.while_session)):
        ended = "" if made.while_session else ", kept sessions"
        name = place if len(guaranteed) == 1 else f"{place}: {made.name}{ended}"
        yield Delivery(name, made), tuple(guaranteed[made])


def guarantee(qos: int, while_session: bool, expires: bool = False) -> Guarantee:
    """Returns the delivery guarantee of a QoS; `while_session`: it holds only while the session lasts;
    `expires`: the broker may drop a message that waited too long.
    """
    single, loses = qos != 1, qos == 0 or expires
    if not expires or qos == 0:
        return Guarantee(f"QoS {qos}", _RULES[qos], not loses, single, while_session=while_session)
    twice = "none is delivered twice" if single else "one may be delivered twice"
    name = f"QoS {qos}, expires"
    rule = f"{name}: a message may expire at the broker, so one may be lost, and {twice}"
    return Guarantee(name, rule, lossless=False, single=single, while_session=while_session)
