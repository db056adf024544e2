"""Tests `vnet why` on shipped topologies with captures at every node and link: the parts of every message add
up to its latency, and every lost message has an owner.
"""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML
from virtual_place import PROJECT, Place

from capture.why.answer import Run

# Topology: its parameters.
SUMS: dict[str, tuple[str, ...]] = {
    "mqtt-many-to-one": ("clients=4", "rate=40 /s", "hold=10s"),
    "dumbbell": ("hold=10s",),
    "priorities": ("hold=5s",),
    "udp-request": ("clients=3", "hold=10s"),
    "tcp-request": ("clients=3", "hold=10s"),
    "http-request": ("clients=2", "hold=10s"),
}
FEWEST = 80  # messages of a run
# Nodes that are added to a topology, whose own flows are bulk transfers without messages.
MORE: dict[str, dict[str, Any]] = {
    "dumbbell": {
        "site-a": {
            "segment": "left",
            "software": {"meter": {"udp": {"to": "reader", "push": {"size": "200 B", "rate": "20 /s"}}}},
        },
        "reader": {"segment": "right", "software": {"take": {"udp": {"listen": 9000}}}},
    }
}
# Topology: its parameters, and whether it loses messages. In cross-traffic the queue drops frames, which TCP
# sends again.
OWNERS: dict[str, tuple[tuple[str, ...], bool]] = {
    "mqtt-outage": (("clients=4", "qos=0", "hold=28s"), True),
    "cross-traffic": (("clients=4", "qos=0", "hold=15s", "begin=hold + 2 s", "length=8s"), False),
}


def everywhere(place: Place, name: str, parameters: tuple[str, ...]) -> Run:
    """Runs a topology with captures at each node that has software, and at each link."""
    given = tuple(word for one in parameters for word in ("-p", one))
    shipped = PROJECT / f"topologies/{name}.yaml"
    data: dict[str, Any] = YAML(typ="safe").load(shipped)
    data["nodes"] |= MORE.get(name, {})
    count = next((int(one.partition("=")[2]) for one in parameters if one.startswith("clients=")), 1)
    nodes = [node for node, said in (data.get("nodes") or {}).items() if said.get("software")]
    for group, said in (data.get("groups") or {}).items():
        assert said["count"] == "${clients}"
        nodes += [f"{group}{number}" for number in range(1, count + 1)]
    points = [f"node {node}" for node in nodes] + [f"link {link}" for link in data["links"]]
    data["captures"] = {f"c{number}": {"at": at, "snaplen": 250} for number, at in enumerate(points)}
    data.pop("campaign", None)
    file = place.cwd / f"{name}.yaml"
    with file.open("w") as to:
        YAML(typ="safe").dump(data, to)
    return Run(place.run(*given, "--lab", "why", file=str(file)).run_dir)


@pytest.mark.sweep
@pytest.mark.parametrize("name", SUMS)
def test_the_parts_of_every_message_add_up(place: Place, name: str) -> None:
    found = list((run := everywhere(place, name, SUMS[name])).answers(run.messages))
    arrived = [one for one in found if one.latency_ns is not None]
    assert len(found) == run.messages.height and len(arrived) >= FEWEST
    for one in arrived:
        assert sum(part.length_ns for part in one.parts) == one.latency_ns, one


@pytest.mark.sweep
@pytest.mark.parametrize("name", OWNERS)
def test_every_lost_message_has_an_owner(place: Place, name: str) -> None:
    parameters, loses = OWNERS[name]
    found = list((run := everywhere(place, name, parameters)).answers(run.messages))
    assert len(found) == run.messages.height >= FEWEST
    lost = [one.lost for one in found if one.latency_ns is None]
    assert bool(lost) == loses
    assert not [one for one in lost if one is None or not one.owners]
    assert not [one for one in lost if one is not None and one.verdict != "holds"]
