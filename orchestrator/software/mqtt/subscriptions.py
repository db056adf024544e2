"""Finds the receivers and the delivery guarantee of each MQTT message by matching topic filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from contract.plan import Delivery, Guarantee

from .topics import SHARED, inner, matches

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
    replies: bool = False  # whether the client replies to requests, which needs MQTT 5


@dataclass(frozen=True, slots=True)
class Group:
    """A shared subscription at a broker: each message reaches one of its members (MQTT 5, 4.8.2)."""

    name: str  # "$share/GROUP/FILTER at BROKER"; stands in the plan in place of a receiver
    members: tuple[Subscribed, ...]

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Returns the members' endpoints, each once."""
        return tuple(dict.fromkeys(one.endpoint for one in self.members))

    def delivery(self, qos: int, expires: bool) -> Delivery:
        """Returns the delivery guarantee of a message to the group as a whole. Its QoS is the lowest of the
        publication's and all members'; if only some members have QoS 0, nothing is guaranteed, since one
        member may lose the message and another may get it twice.
        """
        levels = {min(qos, one.qos) for one in self.members}
        made = guarantee(min(levels), any(one.while_session for one in self.members), expires)
        if min(levels) == 0 and len(levels) > 1:
            name = f"QoS {' or '.join(map(str, sorted(levels)))}"
            rule = f"{name}: the members of the group differ, so nothing is guaranteed"
            made = Guarantee(name, rule, while_session=made.while_session)
        ended = "" if made.while_session else ", kept sessions"
        return Delivery(f"{self.name}: {made.name}{ended}", made)


@dataclass
class Subscriptions:
    """All subscriptions of a lab; filters without wildcards are found in a dictionary."""

    exact: dict[tuple[str, str], list[Subscribed]] = field(default_factory=dict)
    wild: dict[str, list[Subscribed]] = field(default_factory=dict)
    groups: dict[str, dict[str, list[Subscribed]]] = field(
        default_factory=dict
    )  # broker -> $share/... -> members

    @classmethod
    def of(cls, found: Iterable[Subscribed]) -> Subscriptions:
        made = cls()
        for one in found:
            if one.topic.startswith(SHARED):
                made.groups.setdefault(one.broker, {}).setdefault(one.topic, []).append(one)
            elif any(sign in one.topic for sign in "+#"):
                made.wild.setdefault(one.broker, []).append(one)
            else:
                made.exact.setdefault((one.broker, one.topic), []).append(one)
        return made

    def to(self, broker: str, topic: str, sender: str) -> list[Subscribed]:
        """Returns the subscriptions, except shared ones, that match a topic of `sender`, one for each client:
        the one with the highest QoS. Leaves out the sender's own subscriptions with `no_local`.
        """
        found = [
            *self.exact.get((broker, topic), ()),
            *(one for one in self.wild.get(broker, ()) if matches(one.topic, topic)),
        ]
        found = [one for one in found if not (one.no_local and one.endpoint == sender)]
        return list({one.endpoint: one for one in sorted(found, key=lambda one: one.qos)}.values())

    def shared(self, broker: str, topic: str) -> list[Group]:
        """Returns the groups of shared subscriptions that match a topic."""
        return [
            Group(f"{name} at {broker}", tuple(members))
            for name, members in self.groups.get(broker, {}).items()
            if matches(inner(name), topic)
        ]


def deliveries(
    broker: str, topic: str, qos: int, subscribers: Iterable[Subscribed], expires: bool = False
) -> Iterator[tuple[Delivery, tuple[str, ...]]]:
    """Yields each delivery guarantee with its set of receivers; only one if all receivers have the same.

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
