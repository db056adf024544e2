"""Tests in virtual time where the time of real messages went: waiting behind another flow in a queue, drops
of a full queue and of netem; no time is left unexplained between captures at every node.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from virtual_place import Place

from capture.why.answer import Answer, Run
from capture.why.parts import QUEUE, UNEXPLAINED
from capture.why.select import select
from capture.why.summary import by_class

DUMBBELL = """\
name: why-dumbbell
seed: 1
segments:
  left: {subnet: 10.1.0.0/24}
  right: {subnet: 10.2.0.0/24}
nodes:
  r1: {segment: left, forward: true}
  r2: {segment: right, forward: true}
  a: {segment: left, software: {ask: {udp: {to: b, push: {size: 200 B, rate: 10 /s, class: site-a}}}}}
  b: {segment: right, software: {answer: {udp: {listen: 9000}}}}
  s: {segment: left, software: {send: {bulk: {to: d, start: hold + BULK, for: 500 ms}}}}
  d: {segment: right, software: {take: {bulk: {listen: 5201}}}}
links:
  wan: {between: [r1, r2], both: {rate: 5 Mbit/s, delay: 20 ms, limit: 100}}
captures:
  a: {at: node a}
  wan: {at: link wan, snaplen: 200}
  b: {at: node b}
run: {connect_interval: 100 ms, hold: 3 s, drain: 1 s}
"""
FLOOD = """\
name: why-flood
seed: 1
segments:
  left: {subnet: 10.1.0.0/24}
  right: {subnet: 10.1.0.0/24}
nodes:
  a: {segment: left, software: {ask: {udp: {to: b, push: {size: 200 B, rate: 50 /s}}}}}
  b: {segment: right, software: {answer: {udp: {listen: 9000}}}}
  s: {segment: left, software: {send: {bulk: {to: d, protocol: udp, rate: FLOW, size: 1000 B}}}}
  d: {segment: right, software: {take: {bulk: {listen: 5201}}}}
links:
  wan: {between: [left, right], both: {rate: 2 Mbit/s, delay: 5 ms, limit: 50, loss: LOSS}}
captures:
  a: {at: node a}
  wan: {at: link wan, snaplen: 200}
run: {connect_interval: 100 ms, hold: 4 s, drain: 1 s}
"""


def opened(place: Place, tmp_path: Path, text: str) -> Run:
    file = tmp_path / "lab.yaml"
    file.write_text(text)
    return Run(place.run("--lab", "why", file=str(file)).run_dir)  # a run with tables


def whole(run: Run) -> list[Answer]:
    """Returns all answers, after it has checked that their parts add up and leave no time unexplained."""
    found = list(run.answers(run.messages))
    for one in found:
        assert sum(part.length_ns for part in one.parts) == (one.latency_ns or 0)
        assert UNEXPLAINED not in {part.what for part in one.parts} and not one.notes
    return found


def test_the_bulk_flow_ahead_is_named(place: Place, tmp_path: Path) -> None:
    run = opened(place, tmp_path, DUMBBELL.replace("BULK", "500 ms"))
    assert whole(run)
    (of,) = by_class(run, run.messages)
    most = of.slow[0]
    assert (most.what, most.where, next(iter(most.behind))) == (QUEUE, "link wan forward", "s")


@pytest.mark.sweep
def test_with_the_flow_ahead_later_the_message_is_as_much_faster_as_it_waited(
    place: Place, tmp_path: Path
) -> None:
    run = opened(place, tmp_path, DUMBBELL.replace("BULK", "500 ms"))
    (slowest,) = run.answers(select(run, worst=1), behind=True)
    waited = sum(part.length_ns for part in slowest.parts if part.what == QUEUE)
    short = opened(place, tmp_path, DUMBBELL.replace("BULK", "2200 ms"))
    (same,) = short.answers(select(short, slowest.message))
    assert slowest.latency_ns is not None and same.latency_ns is not None
    assert waited > 10_000_000
    assert abs(slowest.latency_ns - waited - same.latency_ns) < 1_000_000


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("flow", "loss", "owner"),
    [
        ("2200 kbit/s", "0 %", "full queue (limit 50 packets)"),
        ("100 kbit/s", "10 %", "netem's draw of loss"),
    ],
)
def test_each_lost_message_has_its_owner(
    place: Place, tmp_path: Path, flow: str, loss: str, owner: str
) -> None:
    run = opened(place, tmp_path, FLOOD.replace("FLOW", flow).replace("LOSS", loss))
    lost = [one.lost for one in whole(run) if one.latency_ns is None]
    assert len(lost) > 5
    for one in lost:
        assert one is not None and one.verdict == "holds", one
        assert len(one.owners) == 1 and one.owners[0].endswith(owner) and one.counters[0].value > 0
