"""Checks and plans requests over MQTT 5: messages with response topic and correlation data, and their replies
(MQTT 5, 4.10).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from contract.plan import Note

from ...language.source import Path
from ..checking import Checks
from ..placeholders import fill_for
from ..scene import Placed, Scene
from .file import Publish
from .session_checks import check_topic
from .sizes import LARGEST_PAYLOAD, SMALLEST_BYTES


def check_requests(report: Checks, wanted: Publish, path: Path, version: str) -> None:
    """Reports a request in MQTT 3.1.1, a reply whose size is out of range, and a response topic that has
    wildcards or no request.
    """
    if wanted.response_topic is not None:
        check_topic(report, (*path, "response_topic"), wanted.response_topic)
        if wanted.reply is None:
            rule = "is a key of requests, and the messages are no requests"
            remedy = 'write for example `reply: "100 B"`, or leave it out'
            report.add((*path, "response_topic"), wanted.response_topic, rule, remedy)
    if wanted.reply is None:
        return
    if version == "3.1.1":
        rule = "MQTT 3.1.1 has no response topic"
        report.add((*path, "reply"), f"{wanted.reply} B", rule, "write `version: 5`, or leave it out")
    if not SMALLEST_BYTES <= wanted.reply <= LARGEST_PAYLOAD:
        rule = f"a reply has from {SMALLEST_BYTES} to {LARGEST_PAYLOAD} bytes"
        report.add((*path, "reply"), f"{wanted.reply} B", rule, 'write for example "100 B"')


def requesting(scene: Scene, client: Placed, spec: dict[str, Any], receivers: int) -> dict[str, Any]:
    """Returns the agent's settings of a client whose messages are requests to this number of receivers."""
    wanted = client.model.mqtt.publish.response_topic
    topic = f"answers/{client.endpoint}" if wanted is None else fill_for(scene, client, wanted)
    request = {"response_topic": topic, "receivers": receivers}
    return {**spec, "publish": {**spec["publish"], "request": request}}


def unanswered(client: Placed, topic: str, silent: Sequence[str], receivers: int) -> Iterator[Note]:
    """Yields a note of receivers that do not reply to requests, and of requests without a receiver."""
    place = f"nodes.{client.node}.{client.name}"
    if receivers == 0:
        text = f"nobody subscribes to {topic}, so no request gets a reply"
        yield Note(place, text, "subscribe to it with a client of version 5")
    if silent:
        text = (
            f"{', '.join(silent)}: MQTT 3.1.1 has no response topic, so requests to {topic} stay unanswered"
        )
        yield Note(place, text, "write `version: 5` there")
