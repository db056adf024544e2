"""Tests that a GraphML file like those of the Topology Zoo becomes a valid topology that can be planned."""

from __future__ import annotations

import io
from pathlib import Path

import networkx
import pytest
from click.testing import CliRunner

from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.importing import graphml_command
from orchestrator.plan.build import make_plan
from orchestrator.plan.paths import Paths
from orchestrator.topology import TopologyError
from orchestrator.topology.graphml import left_out, topology_text
from orchestrator.topology.loading import parse

HEAD = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d1" />
<key attr.name="Latitude" attr.type="double" for="node" id="d2" />
<key attr.name="Longitude" attr.type="double" for="node" id="d3" />
<key attr.name="label" attr.type="string" for="node" id="d4" />
<graph edgedefault="undirected">
"""


def node(identity: int, label: str, place: tuple[float, float] | None = None) -> str:
    at = f'<data key="d2">{place[0]}</data><data key="d3">{place[1]}</data>' if place else ""
    return f'<node id="{identity}">{at}<data key="d4">{label}</data></node>\n'


def edge(a: int, b: int, rate: float = 0) -> str:
    speed = f'<data key="d1">{rate}</data>' if rate else ""
    return f'<edge source="{a}" target="{b}">{speed}</edge>\n'


def graphml(*parts: str) -> bytes:
    return (HEAD + "".join(parts) + "</graph></graphml>").encode()


def test_places_become_delays_and_labels_names() -> None:
    berlin, paris = node(0, "Berlin", (52.52, 13.405)), node(1, "Paris (FR)", (48.857, 2.352))
    text = topology_text(
        "x", graphml(berlin, paris, node(2, "Paris (FR)"), edge(0, 1, 1e9), edge(1, 2)), "zoo"
    )
    model = parse("zoo.yaml", text.encode()).model
    assert list(model.nodes) == ["berlin", "paris-fr", "paris-fr-2"]
    way = model.links["l1"].both
    assert way is not None and way.rate == 10**9
    assert abs(way.delay - 4_390_000) < 50_000  # ns, the delay of 878 km of fibre
    assert model.links["l2"].both is not None and model.links["l2"].both.delay == 1_000_000


def test_a_graph_of_150_routers_is_planned_and_everybody_reaches_everybody() -> None:
    parts = [node(i, f"City {i}", (i % 50, i // 3)) for i in range(150)]
    parts += [edge(i, (i * 7 + 1) % 150) for i in range(150)] + [edge(i, i + 1) for i in range(149)]
    plan = make_plan(parse("zoo.yaml", topology_text("x", graphml(*parts), "zoo", hosts=True).encode()))
    paths = Paths.of(plan)
    assert sum(n.forward for n in plan.nodes) == 150
    assert all(paths.between("h-city-0", f"h-city-{i}") for i in range(1, 150))


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"hello", "is not XML"),
        (b"", "is not XML"),
        (graphml(), "has no edge"),
        (graphml(node(0, "a"), edge(0, 5)), "no node of that id"),
        (graphml(node(0, "a"), edge(0, 0)), "has no edge"),
        (b'<?xml version="1.0" encoding="nonsense"?><a/>', "cannot be read|is not XML"),
    ],
)
def test_what_is_no_graph_is_refused(content: bytes, rule: str) -> None:
    with pytest.raises(TopologyError, match=rule):
        topology_text("x.graphml", content, "zoo")


# The 12-cage (C. T. Benson, Minimal regular graphs of girths eight and twelve, 1966), in LCF notation.
CAGE = ([17, 27, -13, -59, -35, 35, -11, 13, -53, 53, -27, 21, 57, 11, -21, -57, 59, -17], 7)


def cage() -> networkx.Graph[int]:
    graph: networkx.Graph[int] = networkx.LCF_graph(126, *CAGE)
    assert networkx.girth(graph) == 12 and networkx.diameter(graph) == 6
    assert {degree for _, degree in graph.degree} == {3}
    return graph


def test_a_known_graph_of_126_nodes_keeps_its_distances() -> None:
    """Shows that a graph of 126 nodes keeps its distances, from GraphML as networkx writes it, without the
    Zoo's keys.
    """
    graph, file = cage(), io.BytesIO()
    networkx.write_graphml(graph, file)
    plan = make_plan(parse("cage.yaml", topology_text("cage", file.getvalue(), "cage").encode()))
    assert sum(node.forward for node in plan.nodes) == 126 and len(plan.links) == 189
    paths = Paths.of(plan)
    names = {number: node.name for number, node in zip(graph, plan.nodes, strict=True)}
    for number, far in networkx.single_source_shortest_path_length(graph, 0).items():
        found = paths.between(names[0], names[number])
        assert number == 0 or (found is not None and len(found.nodes) - 1 == far)


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    graph, output = tmp_path / "zoo.graphml", tmp_path / "zoo.yaml"
    graph.write_bytes(graphml(node(0, "a"), node(1, "b"), edge(0, 1)))
    arguments = [str(graph), "-o", str(output)]
    assert CliRunner().invoke(graphml_command, arguments).exit_code == 0
    output.write_text("name: mine\n")
    done = CliRunner().invoke(graphml_command, arguments, standalone_mode=False)
    assert isinstance(done.exception, CliError) and done.exception.status == USAGE
    assert "exists already" in done.exception.text and output.read_text() == "name: mine\n"
    done = CliRunner().invoke(graphml_command, [str(graph), "-o", str(tmp_path / "none" / "zoo.yaml")])
    assert "cannot be written" in str(getattr(done.exception, "text", done.output))


def test_what_a_graph_loses_is_said() -> None:
    head = HEAD.replace(
        "<graph ", '<key attr.name="latency" attr.type="double" for="edge" id="d9" /><graph '
    ).replace("undirected", "directed")
    slow = '<edge source="1" target="0"><data key="d9">5</data></edge>'
    parts = [node(0, "A"), node(1, "B"), node(2, "C"), edge(0, 1, 1e9), edge(0, 0), slow]
    content = (head + "".join(parts) + "</graph></graphml>").encode()
    assert left_out("x", content) == [
        "the node 2 has no edge to another one",
        "the edge from 0 to itself",
        "the attribute latency of edges",
        "the directions of 0 and 1: each of their edges is a link both ways",
    ]  # fmt: skip
    assert not left_out("x", graphml(node(0, "A"), node(1, "B"), edge(0, 1, 1e9), edge(1, 0)))


def test_the_command_says_what_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "x.graphml"
    file.write_bytes(graphml(node(0, "A"), node(1, "B"), edge(0, 1), edge(1, 1)))
    done = CliRunner().invoke(graphml_command, [str(file), "-o", str(tmp_path / "x.yaml")])
    assert done.exit_code == 0 and "left out: the edge from 1 to itself" in done.output


def test_a_hyperedge_is_refused() -> None:
    hyper = '<hyperedge><endpoint node="0"/><endpoint node="1"/></hyperedge>'
    with pytest.raises(TopologyError, match="has a hyperedge"):
        topology_text("x", graphml(node(0, "A"), node(1, "B"), edge(0, 1), hyper), "zoo")
