"""Tests encodings of measured signals in the plan: the message's length in each protocol, and mistakes in
files.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mistakes import refused

from contract.plan import Payload
from orchestrator.plan.build import make_plan
from orchestrator.software.encodings import MOST_SIGNALS, encoded_bytes
from orchestrator.topology.loading import parse

SAYS = "encoding: villas-json, signals: 10"
SENDERS = {
    "mqtt": f"mqtt: {{broker: server, publish: {{topic: m, rate: 10 /s, {SAYS}}}}}",
    "amqp": f"amqp: {{broker: server, publish: {{exchange: e, key: m, rate: 10 /s, {SAYS}}}}}",
    "udp": f"udp: {{to: sink, push: {{rate: 10 /s, {SAYS}}}}}",
    "tcp": f"tcp: {{to: sink, push: {{rate: 10 /s, {SAYS}}}}}",
}
PLACES = {"mqtt": "mqtt.publish", "amqp": "amqp.publish", "udp": "udp.push", "tcp": "tcp.push"}


def file(kind: str) -> str:
    return f"""\
name: signals
segments: {{lan: {{subnet: 10.1.0.0/24}}}}
nodes:
  server: {{segment: lan, software: {{rabbit: {{broker: rabbitmq}}}}}}
  sink: {{segment: lan, software: {{u: {{udp: {{listen: 9000}}}}, t: {{tcp: {{listen: 9000}}}}}}}}
  meter:
    segment: lan
    software:
      out:
        {SENDERS[kind]}
run: {{hold: 10 s}}
"""


@pytest.mark.parametrize("kind", SENDERS)
@pytest.mark.parametrize(("encoding", "size"), [("villas-json", 289), ("protobuf", 151)])
def test_the_number_of_signals_says_the_length(kind: str, encoding: str, size: int) -> None:
    text = file(kind).replace("villas-json", encoding)
    (flow,) = make_plan(parse("signals.yaml", text.encode())).flows
    assert flow.payload == Payload(encoding, size)


@given(st.integers(1, MOST_SIGNALS))
def test_json_is_as_long_as_its_text(signals: int) -> None:
    number = 10**9  # ten digits: the agent pads all whole numbers except nanoseconds to this length
    sample = {
        "ts": {"origin": [number, 10**8]},
        "sequence": number,
        "flow": number,
        "data": ["v" * 15] * signals,
    }
    assert encoded_bytes("villas-json", signals) == len(json.dumps([sample]))


@pytest.mark.parametrize("kind", SENDERS)
@pytest.mark.parametrize(
    ("new", "at", "rule"),
    [
        ("encoding: protobuf", "encoding", "no number of signals"),
        ("signals: 10", "signals", "there is none"),
        ("encoding: protobuf, signals: 1001", "signals", "1000"),
        ("encoding: xml, signals: 10", "encoding", "villas-json"),
        ("SIZE: 200 B, encoding: protobuf, signals: 10", "SIZE", "exactly 151 bytes"),
    ],
)
def test_what_cannot_be_kept_is_refused(kind: str, new: str, at: str, rule: str) -> None:
    size = "size" if kind in ("udp", "tcp") else "payload_size"
    place = f"nodes.meter.software.out.{PLACES[kind]}.{at.replace('SIZE', size)}"
    refused(file(kind), SAYS, new.replace("SIZE", size), place, rule)


def test_a_size_that_is_the_encodings_own_may_stand_there() -> None:
    text = file("udp").replace(SAYS, f"{SAYS}, size: {encoded_bytes('villas-json', 10)} B")
    assert make_plan(parse("signals.yaml", text.encode())).flows[0].payload.bytes == 289


def test_other_payloads_and_requests_have_no_encoding() -> None:
    place = "nodes.meter.software.out"
    refused(
        file("mqtt"),
        SAYS,
        f"{SAYS}, payload: metering-xml",
        f"{place}.mqtt.publish.payload",
        "another payload",
    )
    asks = f"request: {{rate: 10 /s, reply: 30 B, {SAYS}}}"
    refused(file("udp"), f"push: {{rate: 10 /s, {SAYS}}}", asks, f"{place}.udp.request.encoding", "answer")
    refused(file("udp"), SAYS, "deadline: 1 s", f"{place}.udp.push.size", "is missing")
