"""Tests qdiscs of the lab kernel that topology files cannot name: set by tc, and read back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from virtual_place import Place

# The device has four transmit queues, which mqprio and taprio assign and below which etf and cbs are
# attached.
QUEUES = "num_tc 2 map 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 queues 2@0 2@2"
SCHEDULE = "base-time 0 sched-entry S 01 300000 sched-entry S 02 300000 clockid CLOCK_TAI"
CREDIT = "idleslope 98688 sendslope -901312 hicredit 153 locredit -1389 offload 0"
MQPRIO = f"qdisc add dev port root handle 1: mqprio {QUEUES} hw 0"
KINDS = {
    "mqprio": [MQPRIO],
    "taprio": [f"qdisc add dev port root handle 1: taprio {QUEUES} {SCHEDULE}"],
    "etf": [MQPRIO, "qdisc add dev port parent 1:1 etf clockid CLOCK_TAI delta 200000"],
    "cbs": [MQPRIO, f"qdisc add dev port parent 1:1 cbs {CREDIT}"],
    "ets": ["qdisc add dev port root handle 1: ets bands 4 strict 2 quanta 3000 1000"],
    "drr": [
        "qdisc add dev port root handle 1: drr",
        "class add dev port parent 1: classid 1:1 drr quantum 1514",
    ],
    "pie": ["qdisc add dev port root pie target 15ms"],
    "vlan": [
        "qdisc add dev port clsact",
        "filter add dev port egress matchall action vlan push id 5 priority 6",
    ],
}
SHOWN = "tc qdisc show dev port; tc class show dev port; tc filter show dev port egress"


def program(kind: str) -> str:
    """Returns a shell command that makes a device, sets the qdisc, prints it with tc and sends a frame
    through it.
    """
    steps = [
        "ip link add name port numtxqueues 4 type dummy",
        "ip address add 10.9.0.1/24 dev port",
        "ip link set port up",
    ]
    steps += [f"tc {line}" for line in KINDS[kind]]
    return " && ".join([*steps, f"({SHOWN})", "(ping -c 1 -W 1 10.9.0.2 || true)", "ip link delete port"])


@pytest.fixture(scope="module")
def logs(places: Callable[[str], Place]) -> dict[str, str]:
    place = places("disciplines")
    nodes = "".join(
        f"  {kind}: {{segment: s, software: {{set: {{command: '{program(kind)} && echo whole'}}}}}}\n"
        for kind in KINDS
    )
    text = f"name: disciplines\nsegments: {{s: {{subnet: 10.1.0.0/24}}}}\nnodes:\n{nodes}run: {{hold: 3 s}}\n"
    (place.cwd / "disciplines.yaml").write_text(text)
    ran = place.run(file="disciplines.yaml")
    return {kind: (ran.run_dir / f"raw/logs/{kind}.set.log").read_text() for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_there_and_told_as_set(logs: dict[str, str], kind: str) -> None:
    said = logs[kind]
    assert said.endswith("whole\n"), said
    assert ("vlan  push id 5" if kind == "vlan" else f"qdisc {kind} ") in said, said
