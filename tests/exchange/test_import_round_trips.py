"""Tests that an import of an exported network, made by chance or imported from each tool's file, has its
nodes, addresses, routes and impairments.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from page_rows import Case, Tool, compose, core, gns3, graphml, kathara, mahimahi, netlab, shell
from page_rows import containerlab as clab
from page_rows import mininet as scripts

from contract.plan import Direction, Plan
from orchestrator.exchange import containerlab, mininet, to_containerlab, to_mininet, writing
from orchestrator.exchange.network import Network
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

TOOLS: tuple[Tool, ...] = tuple(
    one.TOOL for one in (shell, clab, scripts, kathara, core, gns3, netlab, compose, mahimahi, graphml)
)
FORMATS: dict[str, tuple[Callable[[Plan], str], Callable[[Path], Network], bool]] = {
    "x.clab.yml": (lambda plan: to_containerlab.export(plan).text, containerlab.read, False),
    "x.py": (lambda plan: to_mininet.export(plan).text, mininet.read, True),
}  # fmt: skip


def made(chance: random.Random) -> str:
    """Returns a topology of a line of nodes, with some nodes on a segment."""
    count = chance.randint(2, 5)
    nodes = [f"  n{number}: {{forward: {str(chance.random() < 0.5).lower()}}}" for number in range(count)]
    links = []
    for number in range(count - 1):
        subnet = f"10.{chance.randint(20, 99)}.{number}.0/{chance.choice((24, 29, 30))}"
        rate = f", rate: {chance.randint(1, 50)} Mbit/s" if chance.random() < 0.5 else ""
        side = f"{{delay: {chance.randint(1, 80)} ms, loss: {chance.randint(1, 9)} %{rate}}}"
        way = chance.choice(("both", "forward", "reverse"))
        links.append(f"  l{number}: {{between: [n{number}, n{number + 1}], subnet: {subnet}, {way}: {side}}}")
    hosts = [f"  h{number}: {{segment: lan}}" for number in range(chance.randint(0, 3))]
    head = ["name: made", *(["segments: {lan: {subnet: 10.9.0.0/24}}"] if hosts else [])]
    return "\n".join([*head, "nodes:", *nodes, *hosts, "links:", *links, ""])


def carried(way: Direction) -> bool:
    """Returns whether a direction has an impairment that exports have words for."""
    one = way.impairment
    return bool(one.delay_ns or one.loss or one.rate_bps)


def network_of(plan: Plan, impaired: bool) -> object:
    nodes = {
        node.name: (
            node.forward,
            sorted(f"{card.address}/{card.prefix}" for card in node.interfaces),
            sorted((to, via) for route in node.routes for to in route.to for via in route.via),
        )
        for node in plan.nodes
    }
    ways = {
        (end, other, side.impairment.delay_ns, side.impairment.loss, side.impairment.rate_bps)
        for link in plan.links
        if impaired or link.kind != "access"  # one that only has impairments
        for end, other, side in ((link.a, link.b, link.forward), (link.b, link.a, link.reverse))
        if link.kind != "access" or any(map(carried, (link.forward, link.reverse)))
    }
    joined = {link.name for link in plan.links if link.kind == "nodes"}
    sizes = [
        (node.name, card.mtu) for node in plan.nodes for card in node.interfaces if card.segment in joined
    ]
    trees = {segment.name for segment in plan.segments if segment.stp} if impaired else set()
    return nodes, ways if impaired else {way[:2] for way in ways}, sorted(sizes), trees


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.section[:10])
def test_an_export_keeps_the_network_of_each_tool(name: str, tool: Tool, tmp_path: Path) -> None:
    export, read, impaired = FORMATS[name]
    plan = make_plan(parse(str(tmp_path / "made.yaml"), tool.told(tmp_path)[0].encode()))
    (tmp_path / name).write_text(export(plan))
    written = writing.write(read(tmp_path / name))
    assert not written.problems
    back = make_plan(parse("back.yaml", written.text.encode()))
    assert network_of(back, impaired) == network_of(plan, impaired)


CASES = [
    pytest.param(tool, case, id=f"{tool.section[:12]}-{place}-{number}")
    for tool in TOOLS
    for place, cases in enumerate(tool.rows.values())
    for number, case in enumerate(cases)
    if case.result in ("network", "both")
]


@pytest.mark.parametrize(("tool", "case"), CASES)
def test_an_export_keeps_each_construct_that_is_carried_over(tool: Tool, case: Case, tmp_path: Path) -> None:
    """Each change of a file that changes the network is still there after export and import."""
    plan = make_plan(parse(str(tmp_path / "made.yaml"), tool.told(tmp_path, case, changed=True)[0].encode()))
    for name, (export, read, impaired) in FORMATS.items():
        if not impaired and any(segment.stp for segment in plan.segments):
            assert any("spanning tree" in line for line in to_containerlab.export(plan).left)
            continue  # its bridges are made outside of the file
        (tmp_path / name).write_text(export(plan))
        written = writing.write(read(tmp_path / name))
        assert not written.problems
        back = make_plan(parse("back.yaml", written.text.encode()))
        assert network_of(back, impaired) == network_of(plan, impaired), name


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("seed", range(6))
def test_import_export_import_keeps_the_network(name: str, seed: int, tmp_path: Path) -> None:
    export, read, impaired = FORMATS[name]
    plan, file = make_plan(parse("made.yaml", made(random.Random(seed)).encode())), tmp_path / name
    for _ in range(2):
        file.write_text(export(plan))
        written = writing.write(read(file))
        assert not written.problems
        back = make_plan(parse("back.yaml", written.text.encode()))
        assert network_of(back, impaired) == network_of(plan, impaired)
        plan = back
