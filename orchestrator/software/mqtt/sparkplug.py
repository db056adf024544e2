"""Checks and plans edge nodes of Sparkplug B 3.0: publishers whose messages are NDATA, with birth and death
certificates.
"""

from __future__ import annotations

from typing import Any

from contract.plan import Payload

from ...language.source import Path
from ..checking import Checks
from ..placeholders import fill_for
from ..scene import Placed, Scene
from .file import MqttOptions, Publish, SparkplugNode

# The bytes of NDATA without metrics, and those of each metric (the agent's payload/sparkplug.rs).
HEADER_BYTES, METRIC_BYTES = 40, 31
BIRTH, DEATH, DATA = "NBIRTH", "NDEATH", "NDATA"
# Keys of a publisher that belong to another payload, or that Sparkplug determines.
_OTHERS = ("payload", "payload_size", "payload_sizes", "json_text", "file", "encoding", "signals", "reply")


def topic_of(node: SparkplugNode, what: str) -> str:
    """Returns the topic of an edge node's messages of this type, with placeholders."""
    return f"spBv1.0/{node.group_id}/{what}/{node.edge_node}"


def payload_of(node: SparkplugNode) -> Payload:
    """Returns kind and length of an edge node's data."""
    return Payload("sparkplug", HEADER_BYTES + METRIC_BYTES * node.metrics)


def node_spec(scene: Scene, client: Placed, wanted: Publish) -> dict[str, Any]:
    """Returns the agent's setting of an edge node; {} for another publisher."""
    node = wanted.sparkplug
    if node is None:
        return {}
    topics = {
        key: fill_for(scene, client, topic_of(node, what))
        for key, what in (("birth", BIRTH), ("death", DEATH))
    }
    return {"sparkplug": {**topics, "metrics": node.metrics}}


def check_sparkplug(report: Checks, mqtt: MqttOptions, wanted: Publish, path: Path) -> None:
    """Reports an edge node with a topic, payload or will of its own, with another QoS than 0, with retained
    messages or with a session that outlives its connections; and names that are no level of a topic.
    """
    node = wanted.sparkplug
    if node is None:
        return
    where = (*path, "publish", "sparkplug")
    for key, name in (("group_id", node.group_id), ("edge_node", node.edge_node)):
        if any(sign in name for sign in "/+#"):
            report.add((*where, key), name, "is one level of a topic", "leave out `/`, `+` and `#`")
    for key in (key for key in _OTHERS if key in wanted.model_fields_set):
        shown = "json" if key == "json_text" else key
        rule = "is of another payload than Sparkplug's"
        report.add((*path, "publish", shown), None, rule, "leave one of them out")
    rules = (
        (("publish", "qos"), wanted.qos != 0, "NDATA has QoS 0 (tck-id-topics-ndata-mqtt)"),
        (("publish", "retain"), wanted.retain, "NDATA is not retained (tck-id-topics-ndata-mqtt)"),
        (("will",), mqtt.will is not None, "the will of an edge node is NDEATH"),
        (("clean_session",), not mqtt.clean_session, "an edge node has clean sessions"),
        (("session_expiry",), mqtt.session_expiry not in (None, 0), "an edge node has clean sessions"),
    )
    for place, broken, rule in rules:
        if broken:
            report.add((*path, *place), None, rule, "leave it out")
