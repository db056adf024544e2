"""Tests that the live page turns the files of a lab into lines, rates, flows and places on the map."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_lab import HOSTILE

from orchestrator.cli.page.drawing import drawing
from orchestrator.cli.page.flows import LOST_NS, Flows, Known
from orchestrator.cli.page.rates import Links, Nodes
from orchestrator.cli.page.tail import Tail


@given(st.lists(st.text(alphabet="abc,é", max_size=5), max_size=12), st.lists(st.integers(1, 7), max_size=12))
def test_a_tail_gives_every_line_once_however_the_file_grows(lines: list[str], cuts: list[int]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    shown = 0

    async def fetch(*, path: str, offset: int, length: int = 3) -> dict[str, Any]:
        piece = data[:shown][offset : offset + min(length, 3)]
        return {"size": shown, "data": base64.b64encode(piece).decode()}

    async def read() -> list[str]:
        nonlocal shown
        tail, found = Tail("x", whole=True), []
        for cut in [*cuts, len(data)]:
            shown = min(len(data), shown + cut)
            found += await tail.lines(fetch)
        return found

    assert asyncio.run(read()) == lines


def test_rates_take_no_line_of_another_form() -> None:
    nodes, links = Nodes(), Links()
    nodes.feed(["t_ns,node", "", "x,y,z", "1,a,1,1,1,1,1,1", "1,a,2,2,2,2,2,2", "nonsense" * 9])
    links.feed(["1,l,forward,0,0,0,0,0,0", "1000000001,l,forward,0,0,5,0,0,0"])
    assert nodes.now == {} and links.now["l"]["forward"]["dropped"] == 1.0


def test_flows_join_what_was_sent_with_what_arrived() -> None:
    flows = Flows({"0": Known("a.meter", "meter"), "1": Known("a.bulk", "bulk")})
    found = flows.feed(
        [
            "R,0,1,sub,0,1500,0",
            "S,0,1,10,1000,1001,1600,1,settled",
            "S,0,2,10,2000,2001,0,1,unsettled",
            'R,0,2,"a,b",0,2900,0',
            "R,0,1,sub,0,1700,1",
            "S,9,1,1,1,1,1,1,settled",
            "B,1,d,1,0,0,0,,,",
            "S,0",
        ]
    )
    assert found["meter"] == {
        "settled": 1,
        "received": 2,
        "unsettled": 1,
        "judged": 0,
        "lost": 0,
        "latency_p50_ns": 900,
        "latency_max_ns": 900,
    }
    assert flows.feed(["B,1,d,1,1000000000,125000,9,,,"])["bulk"]["bps"] == 1e6


def test_a_message_that_is_not_there_in_time_is_lost_at_each_receiver_that_lacks_it() -> None:
    flows = Flows({"0": Known("a.meter", "meter", owed=2), "1": Known("b.meter", "meter", owed=1)})
    flows.feed([])  # reads from the beginning of the file
    late = LOST_NS + 5000
    found = flows.feed(
        [
            "S,0,1,10,1000,1001,1600,1,sent",
            "R,0,1,one,0,1500,0",
            "R,0,1,one,0,1700,1",  # a repetition makes it no other receiver
            "S,0,2,10,2000,2001,2600,1,sent",
            "R,0,2,one,0,2500,0",
            "R,0,2,two,0,2500,0",
            "S,1,1,10,3000,3001,0,1,unsettled",  # failed, but that is no loss
            f"S,1,2,10,{late},{late},{late},1,sent",  # may still arrive
        ]
    )
    assert (found["meter"]["judged"], found["meter"]["lost"], found["meter"]["unsettled"]) == (4, 1, 1)
    assert flows.each["a.meter"]["lost"] == 1 and flows.each["b.meter"]["lost"] == 0
    assert flows.feed([f"S,1,3,10,{late + LOST_NS},1,1,1,sent"])["meter"]["lost"] == 1, "the late one"
    flows.skipped()
    flows.feed([f"S,1,4,10,{3 * late},1,1,1,sent"])
    assert flows.feed([f"S,1,5,10,{5 * late},1,1,1,sent"])["meter"]["lost"] == 0, (
        "its arrival may be passed over"
    )


@pytest.mark.parametrize("count", [3, 30, 350])
def test_groups_fold_at_any_size(count: int) -> None:
    nodes = {
        f"n{i}": {"group": "n", "interfaces": [{"segment": "lan"}], "roles": ["client"]} for i in range(count)
    }
    links = {f"n{i}-access": {"a": f"n{i}", "b": "lan", "kind": "access"} for i in range(count)}
    made = drawing({"nodes": nodes, "links": links, "segments": [{"name": "lan"}]})
    assert [(b["name"], len(b["members"])) for b in made["boxes"]] == [("lan", 0), ("n", count)]
    (edge,) = made["edges"]
    assert len(edge["links"]) == count
    for unfolded in (["*"], ["n"]):
        wide = drawing({"nodes": nodes, "links": links, "segments": [{"name": "lan"}]}, unfolded)
        frame, cells = wide["boxes"][1], wide["boxes"][2:]
        assert frame["kind"] == "frame" and [c["name"] for c in cells] == list(nodes)
        assert [e["links"] for e in wide["edges"][1:]] == [[name] for name in links]
        for cell in cells:
            assert abs(cell["x"] - frame["x"]) + cell["width"] / 2 <= frame["width"] / 2
            assert abs(cell["y"] - frame["y"]) + cell["height"] / 2 <= frame["height"] / 2
        places = {(c["x"] // (c["width"] + 1), c["y"] // (c["height"] + 1)) for c in cells}
        assert len(places) == count, "no two in one place"


@pytest.mark.parametrize("linked", [(), (0,), (1,), (0, 2), (0, 1, 2, 3)])
def test_no_line_runs_under_a_box_that_is_none_of_its_ends(linked: tuple[int, ...]) -> None:
    """Shows that no line crosses a foreign box: nodes with a link stand farther from their segment than those
    without.
    """
    nodes = {f"n{i}": {"group": f"n{i}", "interfaces": [{"segment": "lan"}], "roles": []} for i in range(4)}
    links = {f"l{i}": {"a": f"n{i}", "b": "lan", "kind": "access"} for i in linked}
    made = drawing({"nodes": nodes, "links": links, "segments": [{"name": "lan"}]})
    lan, *others = made["boxes"]
    for node in others:
        for box in others:
            if box is node:
                continue
            for step in range(101):  # on the way from the node to the segment
                x = node["x"] + (lan["x"] - node["x"]) * step / 100
                y = node["y"] + (lan["y"] - node["y"]) * step / 100
                inside = abs(x - box["x"]) < box["width"] / 2 and abs(y - box["y"]) < box["height"] / 2
                assert not inside, (node["name"], box["name"])


def test_the_longest_way_reads_from_left_to_right() -> None:
    """Shows that senders, their segment, a router, the bottleneck, a router, a segment and receivers are
    drawn from left to right.
    """
    within = {"s": "left", "r1": "left", "r2": "right", "d": "right"}
    names = ["s1", "s2", "s3", "r1", "r2", "d1", "d2", "d3"]
    segment = {name: within.get(name, within.get(name[0], "")) for name in names}
    nodes = {n: {"group": n, "interfaces": [{"segment": segment[n]}], "roles": []} for n in names}
    links = {"bottleneck": {"a": "r1", "b": "r2", "kind": "nodes"}}
    made = drawing({"nodes": nodes, "links": links, "segments": [{"name": "left"}, {"name": "right"}]})
    x = {box["name"]: box["x"] for box in made["boxes"]}
    assert x["s1"] == x["s2"] == x["s3"] and x["d1"] == x["d2"] == x["d3"]
    assert x["s1"] < x["left"] < x["r1"] < x["r2"] < x["right"] < x["d1"]


def test_routers_stand_apart_and_hostile_names_never_reach_graphviz() -> None:
    names = [f'r{i}"];x[{HOSTILE}' for i in range(80)]
    nodes = {n: {"group": "grid", "interfaces": [], "roles": ["router"]} for n in names}
    links = {f"l{i}": {"a": names[i], "b": names[i - 1], "kind": "nodes"} for i in range(80)}
    made = drawing({"nodes": nodes, "links": links, "segments": []})
    places = [(b["x"], b["y"], b["width"], b["height"]) for b in made["boxes"]]
    assert made["note"] is None and len(made["edges"]) == 80
    for i, (x, y, w, h) in enumerate(places):
        for x2, y2, w2, h2 in places[:i]:
            assert abs(x - x2) >= (w + w2) / 2 - 1 or abs(y - y2) >= (h + h2) / 2 - 1, "boxes overlap"
