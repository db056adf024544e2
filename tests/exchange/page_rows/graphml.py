"""Holds the cases of the section on GraphML."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

from orchestrator.topology.graphml import left_out, topology_text

from . import Told, Tool, network, plain, refused, said, silent

GRAPH = """\
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" for="node" id="d0"/><key attr.name="Latitude" for="node" id="d1"/>
  <key attr.name="Longitude" for="node" id="d2"/><key attr.name="LinkSpeedRaw" for="edge" id="d3"><!--key--></key>
  <key attr.name="LinkNote" for="edge" id="d4"/><key attr.name="Cost" for="edge" id="d5"/><key attr.name="Country" for="node" id="d6"/>
  <key attr.name="Network" for="graph" id="d7"/><key attr.name="graphics" for="node" id="d8"/>
  <graph><data key="d7">x</data>
    <node id="0"><data key="d0">Rome</data><data key="d1">41.9</data><data key="d2">12.5</data></node>
    <node id="1"><data key="d0">Bonn</data><data key="d1">50.7</data><data key="d2">7.1</data></node>
    <node id="2"><data key="d0">Oslo</data><data key="d6">NO</data><data key="d8">box</data></node><!--nodes-->
    <edge source="0" target="1"><data key="d3">1000000</data></edge>
    <edge source="1" target="2"><!--edge--></edge><!--edges-->
  </graph><!--graphs-->
</graphml>
"""


def tell(path: Path) -> Told:
    content = path.read_bytes()
    return topology_text("x.graphml", content, "x"), plain(left_out("x.graphml", content))


ROWS = {
    "node; edge": [
        network("Rome", "Pisa"), network('source="1" target="2"', 'source="0" target="2"'), network("41.9", "40.9"), network("12.5", "13.5")],
    "`LinkSpeedRaw` of an edge": [network("1000000", "2000000"), network("LinkSpeedRaw", "Other"), network("<!--key-->", "<default>5</default>", "<default>6</default>")],
    "a node without an edge": [
        said("<!--nodes-->", '<node id="9"/>'), said("<!--edges-->", '<edge source="1" target="1"/>'), said("<!--edge-->", '<data key="d5">4</data>'),
        said('<edge source="1" target="2">', '<edge source="1" target="2" directed="true">'), said('<edge source="1" target="2">', '<edge source="1" target="2" sourceport="a">'),
        said("<graph>", '<graph edgedefault="directed">', '<graph edgedefault="undirected">'),
    ],
    "labels, notes and drawing": [silent("<!--edge-->", '<data key="d4">note</data>'), silent(">box<", ">ball<"), silent('<data key="d7">x<', '<data key="d7">y<')],
    "`hyperedge`": [
        refused("<!--edges-->", "<hyperedge/>"), refused("<!--graphs-->", "<graph/>"), refused('<data key="d0">Oslo</data>', "<graph/>"), refused("<!--nodes-->", '<node id="1"/>')],
}  # fmt: skip
TOOL = Tool("GraphML of the Topology Zoo", {"x.graphml": GRAPH}, "x.graphml", tell, ROWS)
