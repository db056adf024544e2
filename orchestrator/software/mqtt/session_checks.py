"""Checks the session of an MQTT client: login, TLS, expiry, properties, will and back-off."""

from __future__ import annotations

import re

from ...language.source import Path
from ...language.units import text_ns
from ..brokers import Service
from ..checking import Checks, Here
from ..placeholders import REMEDY, fill, longest, unknown
from ..tls.checks import check_authorities, check_both_ends, check_tls
from .file import NEVER_S, MqttOptions, Publish, Will
from .topics import SHARED

_URL_PATH = re.compile(r"/[!-~]*")
LONGEST_TEXT = 65535  # bytes; MQTT 3.1.1 section 1.5.3


def check_session(report: Checks, here: Here, mqtt: MqttOptions, service: Service | None, path: Path) -> None:
    """Reports mistakes in one client's texts, TLS, intervals, user properties, will and back-off, keys that
    need MQTT 5, and a login that the broker refuses. `service` is that of its broker; None if it is unknown.
    TLS and login of a client with `admission: refused` need not fit the broker.
    """
    for key, text in (("client_id", mqtt.client_id), ("user", mqtt.user), ("password", mqtt.password)):
        if text is not None:
            check_text(report, (*path, key), text)
    if mqtt.tls is not None:
        check_tls(report, (*path, "tls"), mqtt.tls)
    accepted = mqtt.admission == "accepted"
    if service is not None and accepted:
        check_both_ends(report, path, mqtt.tls, service.tls, mqtt.broker)
        if mqtt.tls is not None and service.tls is not None and not service.own_config:
            check_authorities(report, path, mqtt.tls, service.tls, mqtt.broker)
    _websocket(report, mqtt, service, path)
    if mqtt.version == "3.1.1":
        _needs_version_5(report, mqtt, path)
    if mqtt.session_expiry is not None:
        _seconds(report, (*path, "session_expiry"), mqtt.session_expiry)
        _contradiction(report, mqtt, mqtt.session_expiry, path)
    if mqtt.publish is not None:
        _properties(report, mqtt.publish, (*path, "publish"))
    for index, wanted in enumerate(mqtt.subscribe):
        if wanted.no_local and wanted.topic.startswith(SHARED):
            rule = "a shared subscription is for all messages (MQTT 5, 3.8.3.1)"
            report.add((*path, "subscribe", index, "no_local"), None, rule, "leave it out")
    if mqtt.will is not None:
        _will(report, mqtt.will, (*path, "will"))
    if mqtt.backoff is not None:
        _backoff(report, mqtt, path)
    if service is not None and service.users is not None and accepted:
        _login(report, here, mqtt, service.users, path)


def _websocket(report: Checks, mqtt: MqttOptions, service: Service | None, path: Path) -> None:
    """Reports a WebSocket that only one end uses, and an invalid path."""
    if mqtt.websocket is not None and not _URL_PATH.fullmatch(mqtt.websocket.path):
        rule = "is no path of a URL"
        report.add((*path, "websocket", "path"), mqtt.websocket.path, rule, "write for example /mqtt")
    if service is None or (mqtt.websocket is not None) == bool(service.websocket):
        return
    there = "" if service.websocket is None else "write `websocket: true` there, or "
    rule, remedy = (
        (f"the broker of {mqtt.broker} speaks WebSocket only", "write `websocket: true` here")
        if service.websocket
        else (f"the broker of {mqtt.broker} speaks no WebSocket", f"{there}leave it out")
    )
    report.add((*path, "websocket"), None, rule, remedy)


def check_text(report: Checks, where: Path, text: str, what: str = "a text of MQTT") -> None:
    """Reports placeholders that do not exist, and a text with control characters or more than LONGEST_TEXT
    bytes.
    """
    for name in unknown(text):
        report.add(where, text, f"no placeholder is called {{{name}}}", REMEDY)
    _string(report, where, text, what)


def _string(report: Checks, where: Path, text: str, what: str) -> None:
    if not text.isprintable() or longest(text) > LONGEST_TEXT:
        rule = f"{what} has at most {LONGEST_TEXT} bytes, and no control characters"
        report.add(where, text, rule, "write a shorter one, of letters and digits")


def check_topic(report: Checks, where: Path, topic: str) -> None:
    """Reports mistakes in the topic of a message: unknown placeholders, control characters, length, and
    wildcards.
    """
    check_text(report, where, topic, "a topic")
    if any(sign in topic for sign in "+#"):
        report.add(where, topic, "a message's topic has no wildcards", "name one topic")


def _needs_version_5(report: Checks, mqtt: MqttOptions, path: Path) -> None:
    remedy = "write `version: 5`, or leave it out"
    if mqtt.session_expiry is not None:
        rule = "MQTT 3.1.1 has no session expiry"
        report.add((*path, "session_expiry"), text_ns(mqtt.session_expiry), rule, remedy)
    publish = mqtt.publish
    later: list[tuple[Path, bool, str]] = [
        (("receive_maximum",), mqtt.receive_maximum is not None, "receive maximum"),
        (("publish", "message_expiry"), publish is not None and publish.message_expiry is not None, "expiry"),
        (("publish", "topic_alias"), publish is not None and publish.topic_alias, "topic alias"),
        (("publish", "user_properties"), publish is not None and bool(publish.user_properties), "properties"),
    ]
    for index, wanted in enumerate(mqtt.subscribe):
        at: Path = ("subscribe", index)
        later.append(((*at, "no_local"), wanted.no_local, "subscription without one's own messages"))
        later.append(((*at, "identifier"), wanted.identifier is not None, "subscription identifier"))
        later.append(((*at, "retained"), wanted.retained != "always", "choice of retained messages"))
    for place, used, what in later:
        if used:
            report.add((*path, *place), None, f"MQTT 3.1.1 has no {what}", remedy)
    if mqtt.will is not None and mqtt.will.delay:
        rule = "MQTT 3.1.1 has no will delay"
        report.add((*path, "will", "delay"), text_ns(mqtt.will.delay), rule, remedy)
    if mqtt.password is not None and mqtt.user is None:
        rule = "MQTT 3.1.1 has no password without a user (3.1.2.9)"
        report.add((*path, "password"), None, rule, "write `user:`, or `version: 5`")


def _contradiction(report: Checks, mqtt: MqttOptions, expiry_ns: int, path: Path) -> None:
    """Reports a `session_expiry` that contradicts `clean_session`: each connection would discard the session
    that the broker must keep, or the broker would keep a session for no time.
    """
    if "clean_session" not in mqtt.model_fields_set or mqtt.clean_session != bool(expiry_ns):
        return
    kept = f"`session_expiry: {text_ns(expiry_ns)}` " + ("keeps the session" if expiry_ns else "keeps none")
    rule = f"contradicts `clean_session: {str(mqtt.clean_session).lower()}`: {kept}"
    report.add((*path, "session_expiry"), text_ns(expiry_ns), rule, "leave one of the two out")


def _seconds(report: Checks, where: Path, span_ns: int) -> None:
    if span_ns % 10**9 or span_ns // 10**9 > NEVER_S:
        rule = f"must be whole seconds, at most {NEVER_S}"
        report.add(where, text_ns(span_ns), rule, 'write for example "60 s"')


def _properties(report: Checks, publish: Publish, path: Path) -> None:
    if publish.message_expiry is not None:
        _seconds(report, (*path, "message_expiry"), publish.message_expiry)
    for name, value in publish.user_properties.items():
        for text in (name, value):
            _string(report, (*path, "user_properties", name), text, "a user property")


def _will(report: Checks, will: Will, path: Path) -> None:
    check_topic(report, (*path, "topic"), will.topic)
    _seconds(report, (*path, "delay"), will.delay)
    if len(will.payload.encode()) > LONGEST_TEXT:
        rule = f"a will has at most {LONGEST_TEXT} bytes"
        report.add((*path, "payload"), None, rule, "write a shorter one")


def _backoff(report: Checks, mqtt: MqttOptions, path: Path) -> None:
    assert mqtt.backoff is not None
    if mqtt.reconnect == 0:
        rule = "`reconnect: 0 s` never connects again"
        report.add((*path, "backoff"), None, rule, 'write the first wait: `reconnect: "1 s"`')
    elif mqtt.backoff.limit < mqtt.reconnect:
        rule = f"is below the first wait, `reconnect: {text_ns(mqtt.reconnect)}`"
        report.add((*path, "backoff", "limit"), text_ns(mqtt.backoff.limit), rule, "write a longer limit")


def _login(report: Checks, here: Here, mqtt: MqttOptions, users: dict[str, str], path: Path) -> None:
    """Reports a client without a user, or the first node whose user or password differs from the broker's
    `users`.
    """
    if mqtt.user is None:
        rule = f"the broker of {mqtt.broker} admits only its `users`"
        report.add(
            (*path, "user"), None, rule, "write `user:` and `password:`, or `allow_anonymous: true` there"
        )
        return
    for node in here.nodes:
        group, index, count = report.member(node)
        name, word = (
            fill(text or "", node=node, group=group, index=index, count=count)
            for text in (mqtt.user, mqtt.password)
        )
        if name not in users:
            rule = f"the broker of {mqtt.broker} has no such user"
            report.add((*path, "user"), name, rule, "write one of its `users`")
            return
        if users[name] != word:
            rule = f"is not the password of {name} at the broker of {mqtt.broker}"
            report.add((*path, "password"), None, rule, "write the one in its `users`")
            return
