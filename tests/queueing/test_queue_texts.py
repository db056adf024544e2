"""Tests every kind of queue without a kernel: the arguments for `tc`, and that the read-back notices every
difference.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_kinds import ALL, DISCIPLINES, RATED, changed

from contract.codec import build, from_json, to_json
from contract.plan import Band, Discipline, Impairment
from orchestrator import queueing
from orchestrator.lab.drivers.fake_tools import FakeTools
from orchestrator.queueing import htb, matching
from orchestrator.queueing.discipline import Place

DEVICE = "wan-a"


def tools(*changes: tuple[Impairment, Impairment]) -> list[dict[str, Any]]:
    """Returns the qdiscs that the simulated tools report after these changes."""
    fake = FakeTools()
    fake.run("ip", "core", f"link add name {DEVICE} type veth peer name wan-b\n")
    for before, after in changes:
        fake.run("tc", "core", queueing.change_text(DEVICE, before, after))
    return fake.qdiscs("core")


def test_every_kind_stands_here() -> None:
    assert DISCIPLINES.keys() == queueing.QUEUE_KINDS.keys()
    assert all(queue.kind == kind for kind, queue in DISCIPLINES.items())


@pytest.mark.parametrize("name", ALL)
def test_what_is_set_is_read_back(name: str) -> None:
    wanted = ALL[name]
    entries = tools((Impairment(), wanted))
    assert queueing.mismatches(wanted, entries, DEVICE) == []
    assert queueing.found(entries, DEVICE, wanted).queue == wanted.queue


@pytest.mark.parametrize(("first", "second"), list(itertools.product(ALL, ALL)))
def test_every_kind_becomes_every_other(first: str, second: str) -> None:
    a, b = ALL[first], ALL[second]
    assert queueing.mismatches(b, tools((Impairment(), a), (a, b)), DEVICE) == []
    if a != b:
        assert queueing.mismatches(b, tools((Impairment(), a)), DEVICE) != []


def ahead(*names: str) -> Impairment:
    """Returns the example of htb with these classes before the others."""
    queue = DISCIPLINES["htb"]
    bands = tuple(dataclasses.replace(one, ahead=one.name in names) for one in queue.bands)
    return dataclasses.replace(RATED["htb"], queue=dataclasses.replace(queue, bands=bands))


def test_a_class_that_goes_ahead_has_the_first_priority() -> None:
    wanted = ahead("voice")
    lines = [
        line for line in queueing.change_text(DEVICE, Impairment(), wanted).splitlines() if " ceil " in line
    ]
    assert ["prio 1" in line for line in lines] == [False, False, True], "the whole, voice, rest"
    entries = tools((Impairment(), wanted))
    assert queueing.mismatches(wanted, entries, DEVICE) == []
    assert [one[0] for one in queueing.mismatches(RATED["htb"], entries, DEVICE)] == ["queue rest prio"]
    assert [one[0] for one in queueing.mismatches(ahead("rest"), entries, DEVICE)] == [
        "queue voice prio", "queue rest prio",
    ]  # fmt: skip
    assert "ahead: true" in queueing.written(wanted.queue) and "ahead" not in queueing.written(
        DISCIPLINES["htb"]
    )
    assert from_json(Discipline, to_json(wanted.queue)) == wanted.queue
    assert "ahead" not in str(to_json(DISCIPLINES["htb"])), "plans of before stay as they were"


def test_classes_as_tc_shows_them() -> None:
    text = (
        "class htb 3:1 root rate 10Mbit ceil 10Mbit burst 15Kb cburst 15Kb \n"
        "class htb 3:10 parent 3:1 leaf 10: prio 0 rate 2Mbit ceil 5Mbit burst 1600b cburst 1600b \n"
        "class htb 3:11 parent 3:1 leaf 11: prio 1 rate 6Mbit ceil 8Mbit burst 1600b cburst 1600b \n"
    )
    read = [(one["handle"], one["rate"], one.get("prio", 0)) for one in htb.entries(DEVICE, text)]
    assert read == [("3:1", 1_250_000, 0), ("3:10", 250_000, 0), ("3:11", 750_000, 1)]


@pytest.mark.parametrize("kind", RATED)
def test_a_change_of_numbers_keeps_what_waits(kind: str) -> None:
    before, after = RATED[kind], changed(kind)
    text = queueing.change_text(DEVICE, before, after)
    queue_kind = queueing.QUEUE_KINDS[kind]
    again = (
        queue_kind.changes(before, after, Place(DEVICE, "root")) is None
    )  # in this kernel, the kind changes nothing
    assert (" del " in text) == again and "filter add" not in text
    assert queueing.mismatches(after, tools((Impairment(), before), (before, after)), DEVICE) == []


@pytest.mark.parametrize("name", ALL)
def test_any_other_number_in_the_kernel_is_noticed(name: str) -> None:
    """Shows that the read-back notices a change of any number, except the positions of qdiscs and the burst
    of a token bucket.
    """
    wanted = ALL[name]
    entries = tools((Impairment(), wanted))
    for place, entry in enumerate(entries):
        for key, value in [*entry.get("options", {}).items(), *entry.items()]:
            if key in {"kind", "dev", "parent", "root", "options", "class", "handle", "pref", "burst"}:
                continue
            other = copy.deepcopy(entries)
            target = other[place]["options"] if key in entry.get("options", {}) else other[place]
            target[key] = _other(value)
            assert queueing.mismatches(wanted, other, DEVICE) != [], (entry, key)


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, dict):
        return {key: _other(part) for key, part in value.items()}
    if isinstance(value, list):
        return value[:-1]
    return 2 * value + 5 if isinstance(value, int | float) else "elsewhere"


@pytest.mark.parametrize("name", ALL)
def test_a_queue_goes_through_json(name: str) -> None:
    assert from_json(Impairment, to_json(ALL[name])) == ALL[name]


EARLIER = [
    (
        {"prio": None, "red": {"min_bytes": 1}, "steered": True},
        Discipline("red", {"min_bytes": 1}, steered=True),
    ),
    ({"htb": {"classes": [{"name": "x"}]}, "red": None}, Discipline("htb", bands=(Band("x"),))),
    ({"prio": {"bands": [{"name": "x"}]}, "least_bytes": 9}, Discipline("prio", {}, (Band("x"),), False, 9)),
]


@pytest.mark.parametrize(("data", "queue"), EARLIER)
def test_a_queue_of_a_plan_in_the_former_form_is_read(data: dict[str, Any], queue: Discipline) -> None:
    assert build(Discipline, data) == queue


MATCHES = st.builds(
    Band,
    name=st.just("x"),
    pcp=st.lists(st.integers(0, 7), unique=True).map(tuple),
    dscp=st.lists(st.integers(0, 63), unique=True).map(tuple),
    ports=st.lists(st.integers(1, 65535), unique=True).map(tuple),
)


@settings(deadline=None)
@given(st.lists(MATCHES, min_size=1, max_size=4))
def test_filters_are_read_back_as_they_were_given(bands: list[Band]) -> None:
    targets = [f"3:{index + 1:x}" for index in range(len(bands))]
    fake = FakeTools()
    fake.run("ip", "core", f"link add name {DEVICE} type veth peer name wan-b\n")
    fake.run("tc", "core", "".join(f"{line}\n" for line in matching.lines(DEVICE, bands, targets)))
    entries = fake.qdiscs("core")
    assert matching.mismatches(bands, targets, entries) == []
    if entries:
        assert matching.mismatches(bands, targets, entries[:-1]) != []


SHOWN = """\
filter protocol ip pref 1 u32 chain 0 
filter protocol ip pref 1 u32 chain 0 fh 800: ht divisor 1 
filter protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 *flowid 3:10 not_in_hw 
  match 40b80000/f0fc0000 at 0
filter protocol 802.1Q pref 7 u32 chain 0 fh 802::800 order 2048 key ht 802 bkt 0 *flowid 3:11 not_in_hw 
  match 45000000/ff000000 at 0
  match 00060000/00ff0000 at 8
filter protocol 802.1Q pref 3 flower chain 0 handle 0x1 classid 3:1 
  vlan_prio 6
  not_in_hw
"""  # noqa: W291  # as iproute2 6.1 writes it


def test_what_tc_shows_of_filters() -> None:
    read = [(e["pref"], e["protocol"], e["filter"], e["to"], e["keys"]) for e in matching.entries("x", SHOWN)]
    assert read == [
        (1, "ip", "u32", "3:10", ["match 40b80000/f0fc0000 at 0"]),
        (3, "802.1q", "flower", "3:1", ["vlan_prio 6"]),
        (7, "802.1q", "u32", "3:11", ["match 45000000/ff000000 at 0", "match 00060000/00ff0000 at 8"]),
    ]


def test_the_delay_stands_before_the_queue() -> None:
    text = queueing.set_text(DEVICE, ALL["prio after netem"])
    assert [line.split(" handle ")[1].split()[:2] for line in text.splitlines()[:3]] == [
        ["1:", "netem"], ["2:", "tbf"], ["3:", "prio"],
    ]  # fmt: skip


# The packets that a queue can hold if no setting limits them: by bands, by classes, or by bytes of the
# shortest frames. Other kinds state their limit in packets.
HOLDS = {"prio": 120, "htb": 80, "cbs": 120, "red": 12_858, "fq_codel": 1000, "cake": 16_385, "fifo": 70}


@pytest.mark.parametrize("kind", RATED)
@pytest.mark.parametrize("also", ["", " after netem"])
def test_netem_has_room_for_all_that_waits_in_the_queue_below(kind: str, also: str) -> None:
    """Shows that netem's limit includes the packets in the queue below it; otherwise netem would drop packets
    of an empty class.
    """
    wanted = ALL[kind + also]
    holds = HOLDS[kind] if kind in HOLDS else DISCIPLINES[kind].settings["limit_packets"]
    first = queueing.set_text(DEVICE, wanted).splitlines()[0].split()
    assert int(first[first.index("limit") + 1]) == wanted.limit_packets + holds + 1
    entries = tools((Impairment(), wanted))
    assert queueing.found(entries, DEVICE, wanted).limit_packets == wanted.limit_packets


def test_the_limit_of_netem_stays_in_its_32_bits() -> None:
    bands = tuple(dataclasses.replace(band, limit_packets=2**31 - 1) for band in DISCIPLINES["prio"].bands)
    queue = dataclasses.replace(DISCIPLINES["prio"], bands=bands)
    wanted = dataclasses.replace(RATED["prio"], queue=queue)
    assert f"netem limit {2**32 - 1} " in queueing.set_text(DEVICE, wanted)
    assert queueing.mismatches(wanted, tools((Impairment(), wanted)), DEVICE) == []


def test_a_lone_frame_waits_for_nothing_and_gets_what_its_class_may_have() -> None:
    assert {queueing.sending_ns(wanted, 1514) for wanted in RATED.values()} == {0}
    rates = {kind: queueing.lone_bps(wanted) for kind, wanted in RATED.items()}
    assert rates == {**dict.fromkeys(RATED, 10_000_000), "htb": 8_000_000}
