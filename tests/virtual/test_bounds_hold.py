"""Tests that in small random networks in virtual time no message takes longer than its network-calculus
bound.
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from virtual_place import Place

from reports.metrics.bounds import bounded
from reports.rundir import read_run

SENDERS, RATES_MBIT = 4, (2, 5, 10, 20)
STACK = {"prio": {"first": {"dscp": ["EF"]}, "rest": {}}}


def network(draw: random.Random) -> dict[str, Any]:
    """Draws two rows of switches with senders, a receiver at the end, and links of random rates
    and queues.
    """
    made: dict[str, Any] = {
        "name": "random",
        "seed": draw.randrange(1000),
        "segments": {},
        "nodes": {},
        "links": {},
        "run": {"connect_interval": "5 ms", "hold": "3 s", "drain": "1 s"},
    }
    for row in range(2):
        subnet, switches = f"10.{row + 1}.0.0/24", [f"s{row}{place}" for place in range(draw.randint(1, 3))]
        sink = f"sink{row}"
        made["segments"] |= {name: {"subnet": subnet} for name in switches}
        made["nodes"][sink] = {"segment": switches[-1], "software": {"in": {"udp": {"listen": 9000}}}}
        made["links"][sink] = {"between": [sink, switches[-1]], "both": _wire(draw, 20)}
        for number, (a, b) in enumerate(itertools.pairwise(switches)):
            made["links"][f"w{row}{number}"] = {"between": [a, b], "both": _wire(draw, 20)}
        for number in range(SENDERS):
            name = f"n{row}{number}"
            made["nodes"][name] = {
                "segment": draw.choice(switches),
                "software": {"out": {"udp": _sends(draw, sink)}},
            }
            at = made["nodes"][name]["segment"]
            made["links"][name] = {"between": [name, at], "both": _wire(draw, draw.choice(RATES_MBIT))}
    return made


def _wire(draw: random.Random, mbit: int) -> dict[str, Any]:
    found: dict[str, Any] = {"rate": f"{mbit} Mbit/s", "delay": f"{draw.choice([0, 100, 900])} us"}
    return found | ({"queue": STACK} if draw.random() < 0.4 else {})


def _sends(draw: random.Random, sink: str) -> dict[str, Any]:
    # Each sender has at most 1.6 Mbit/s: four of them use less than half of 20 Mbit/s, and one less than its
    # own 2 Mbit/s.
    size, rate = draw.choice([(60, 200), (400, 200), (1000, 100), (1400, 100)])
    burst = draw.choice([1, 1, 3])
    load = {"size": f"{size} B", "rate": f"{rate // burst} /s", "burst": burst}
    what = (
        {"push": load} if draw.random() < 0.7 else {"request": {**load, "reply": "100 B", "timeout": "1 s"}}
    )
    return {"to": sink, **what, **({"dscp": "EF"} if draw.random() < 0.5 else {})}


SWEPT = [pytest.param(seed, marks=pytest.mark.sweep) for seed in range(2, 10)]


@pytest.mark.parametrize("seed", [1, *SWEPT])
def test_no_message_is_above_its_bound(place: Place, seed: int) -> None:
    (place.cwd / "random.yaml").write_text(json.dumps(network(random.Random(seed))))
    ran = place.run("--lab", "random", file="random.yaml")
    found = bounded(read_run(ran.run_dir))
    assert len(found) == 2 * SENDERS
    assert [one for one in found if one.worst_ns is None or not one.count or one.over] == []
