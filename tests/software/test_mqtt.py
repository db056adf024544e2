"""Tests MQTT in the plan: the receivers of each message and its guarantee; only the plan matches topic
filters.
"""

from __future__ import annotations

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.software.mqtt.topics import matches
from orchestrator.topology.loading import parse

FILE = """\
name: subscriptions
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  one: {segment: lan, software: {b: {broker: mosquitto}}}
  two: {segment: lan, software: {b: {broker: mosquitto}}}
  reader: {segment: lan, software: {r: {mqtt: {broker: one, SUBSCRIBE}}}}
  elsewhere: {segment: lan, software: {r: {mqtt: {broker: two, subscribe: [{topic: "#", qos: 2}]}}}}
  sender: {segment: lan, software: {s: {mqtt: {broker: one, publish: {topic: a/b, qos: 1, rate: 1 /s}}}}}
run: {hold: 10 s}
"""


def planned(subscribe: str, **more: str) -> Plan:
    text = FILE.replace("SUBSCRIBE", subscribe)
    for old, new in more.items():
        text = text.replace(old, new)
    return make_plan(parse("s.yaml", text.encode()))


def owed(plan: Plan) -> dict[tuple[str, ...], tuple[str, bool, bool, bool]]:
    (flow,) = plan.flows
    guarantees = {plan.receivers[d.receivers]: d.guarantee for d in flow.deliveries}
    return {who: (p.name, p.lossless, p.single, p.while_session) for who, p in guarantees.items()}


def test_the_lower_qos_is_promised_to_those_at_the_same_broker() -> None:
    assert owed(planned("subscribe: [{topic: a/#}]")) == {("reader",): ("QoS 0", False, True, True)}
    assert owed(planned("subscribe: [{topic: a/+, qos: 1}]")) == {("reader",): ("QoS 1", True, False, True)}
    assert owed(planned("subscribe: [{topic: a/b, qos: 2}]")) == {("reader",): ("QoS 1", True, False, True)}
    kept = owed(planned("clean_session: false, subscribe: [{topic: a/b, qos: 1}]"))
    assert kept == {("reader",): ("QoS 1", True, False, False)}


def test_of_several_subscriptions_the_greatest_counts_once() -> None:
    found = owed(planned("subscribe: [{topic: a/#, qos: 1}, {topic: a/b}, {topic: '#'}]"))
    assert found == {("reader",): ("QoS 1", True, False, True)}


def test_nobody_subscribed_is_nobody_owed() -> None:
    plan = planned("subscribe: [{topic: b/#}]")
    assert plan.flows[0].deliveries == () and plan.receivers == {}


def test_different_guarantees_are_different_deliveries() -> None:
    second = 'sender: {segment: lan, software: {t: {mqtt: {broker: one, subscribe: [{topic: "a/+"}]}}, s:'
    plan = planned("subscribe: [{topic: a/#, qos: 1}]", **{"sender: {segment: lan, software: {s:": second})
    assert [d.receivers for d in plan.flows[0].deliveries] == ["a/b at one: QoS 0", "a/b at one: QoS 1"]
    assert owed(plan) == {
        ("sender-t",): ("QoS 0", False, True, True),
        ("reader",): ("QoS 1", True, False, True),
    }


def shared(first: str, second: str) -> Plan:
    """Plans two MQTT 5 clients with the given subscriptions."""
    head = "sender: {segment: lan, software: {"
    again = f"{head}t: {{mqtt: {{broker: one, version: 5, subscribe: {second}}}}}, s:"
    return planned(f"version: 5, subscribe: {first}", **{f"{head}s:": again})


def test_a_shared_group_is_owed_each_message_once_as_one_receiver() -> None:
    plan = shared("[{topic: $share/g/a/+, qos: 1}]", "[{topic: $share/g/a/+, qos: 2}]")
    assert owed(plan) == {("$share/g/a/+ at one",): ("QoS 1", True, False, True)}
    assert plan.shared == {"$share/g/a/+ at one": ("reader", "sender-t")} and plan.notes == ()


def test_two_groups_are_owed_each_message_and_a_filter_makes_another_group() -> None:
    plan = shared("[{topic: $share/g/a/b, qos: 1}]", "[{topic: $share/g/a/#, qos: 1}]")
    assert {who for (who,) in owed(plan)} == {"$share/g/a/b at one", "$share/g/a/# at one"}


def test_a_group_with_qos_0_and_1_is_guaranteed_nothing() -> None:
    plan = shared("[{topic: $share/g/a/b, qos: 1}]", "[{topic: $share/g/a/b}]")
    assert owed(plan) == {("$share/g/a/b at one",): ("QoS 0 or 1", False, False, True)}


def test_a_group_whose_member_gets_the_topic_twice_has_no_verdict_and_that_is_said() -> None:
    plan = shared("[{topic: $share/g/a/b, qos: 1}]", "[{topic: $share/g/a/b}, {topic: a/#}]")
    assert owed(plan) == {("sender-t",): ("QoS 0", False, True, True)} and plan.shared == {}
    (note,) = plan.notes
    assert note.place == "nodes.sender.s" and "another subscription to a/b" in note.text


def test_names_in_records_tell_the_sessions_of_a_node_apart() -> None:
    again = "sender: {segment: lan, software: {t: {mqtt: {broker: one, subscribe: [{topic: x}]}}, s:"
    plan = planned("subscribe: [{topic: a/b}]", **{"sender: {segment: lan, software: {s:": again})
    names = [s.session.endpoint for n in plan.nodes for s in n.software if s.session]
    assert names == ["reader", "elsewhere", "sender-t", "sender-s"]
    assert plan.flows[0].sender == "sender-s"


def test_patience_is_a_half_more_than_the_keepalive_of_a_clean_session() -> None:
    for options, wanted in (
        ("keepalive: 20 s, subscribe: [{topic: a}]", 30 * 10**9),
        ("clean_session: false, subscribe: [{topic: a}]", None),
    ):
        session = planned(options).nodes[2].software[0].session
        assert session is not None and session.patience_ns == wanted


def test_filters_after_section_4_7() -> None:
    assert matches("a/#", "a") and matches("#", "a/b") and matches("+/b", "a/b")
    assert not matches("#", "$SYS/x") and not matches("a/+", "a/b/c") and not matches("a", "a/b")
