"""Tests that a schedule that exceeds a link's rate gives a note with both rates."""

from __future__ import annotations

import pytest

from contract.plan import Note
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

UDP = "udp: {to: meter, request: {size: 1699 B, reply: 1699 B, rate: RATE}}"
PGM = (
    "zeromq: {pub: 5555, transport: epgm, answers: 5556, "
    "request: {size: 1699 B, reply: 1699 B, rate: RATE, timeout: 5 s}}"
)
FILE = """\
name: bursts
segments: {near: {subnet: 10.1.0.0/24, mtu: 113}, far: {mtu: 113}}
nodes: {utility: {segment: far, software: {updates: {SENDER}}}}
groups: {meter: {count: 3, segment: near, software: {in: {RECEIVER}}}}
links: {way: {between: [near, far], both: {rate: 250 kbit/s}, duplex: DUPLEX}}
run: {hold: 60 s}
"""


def notes(sender: str, rate: str, receiver: str = "udp: {listen: 9000}", duplex: str = "full") -> list[Note]:
    text = FILE.replace("SENDER", sender.replace("RATE", rate)).replace("RECEIVER", receiver)
    plan = make_plan(parse("bursts.yaml", text.replace("DUPLEX", duplex).encode()))
    return [note for note in plan.notes if "pile up" in note.text]


# 1,699 B are sent in 19 packets of at most 113 B with headers of 34 B: 1,699 + 19 x 34 = 2,345 B, which take
# 75.04 ms at 250 kbit/s; to three receivers 225.12 ms.
def test_all_copies_of_a_message_pass_the_link_before_the_next_is_due() -> None:
    assert notes(UDP, "4 /s") == []
    (note,) = notes(UDP, "5 /s")
    assert note.place == "class utility.updates"
    assert "every 200 ms" in note.text and "link way at least 225.12 ms" in note.text


def test_in_half_duplex_the_answers_take_the_same_time() -> None:
    assert notes(UDP, "2 /s", duplex="half") == []
    (note,) = notes(UDP, "4 /s", duplex="half")
    assert "at least 450.24 ms" in note.text


def test_one_after_the_other_is_one_copy() -> None:
    by_turns = UDP.replace("rate: RATE", "rate: RATE, spread: round-robin")
    assert notes(by_turns, "13 /s") == []
    assert len(notes(by_turns, "14 /s")) == 1


@pytest.mark.parametrize(("rate", "count"), [("3 /s", 0), ("4 /s", 1)])
def test_multicast_passes_once_for_all(rate: str, count: int) -> None:
    # One message there and three back take 300.16 ms of the shared transmitter.
    found = notes(PGM, rate, "zeromq: {sub: utility}", "half")
    assert len(found) == count and all("at least 300.16 ms" in note.text for note in found)


# Both nodes' links are shaped at their own eth0: one message there and one back each take 4.8 ms (1,200 B at
# 2 Mbit/s).
OWN_LINKS = """\
name: own-links
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  a: {segment: lan, software: {ask: {udp: {to: b, request: {size: 1166 B, reply: 1166 B, rate: 150 /s}}}}}
  b: {segment: lan, software: {in: {udp: {listen: 9000}}}}
links:
  a: {between: [a, lan], both: {rate: 2 Mbit/s}}
  b: {between: [b, lan], both: {rate: 2 Mbit/s}}
run: {hold: 60 s}
"""


def test_devices_of_equal_names_are_told_apart() -> None:
    plan = make_plan(parse("own-links.yaml", OWN_LINKS.encode()))
    assert [note.text for note in plan.notes if "pile up" in note.text] == []
