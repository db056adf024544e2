"""Tests the drawing of a plan: well-formed SVG that names groups, counts and impairments."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.graph import graph_command
from orchestrator.plan.build import make_plan
from orchestrator.plan.graph import GraphError, graph
from orchestrator.topology import load

TOPOLOGIES = Path(__file__).parents[2] / "topologies"


@pytest.mark.skipif(shutil.which("dot") is None, reason="dot (graphviz) is not installed")
def test_groups_are_one_box_and_impairments_stand_on_edges() -> None:
    svg = graph(make_plan(load(TOPOLOGIES / "mqtt-many-to-one.yaml"))).decode()
    words = " ".join("".join(ET.fromstring(svg).itertext()).replace("\u00a0", " ").split())
    for expected in (
        "client \u00d7 350",
        "10.10.0.3 - 10.10.1.96",
        "wan",
        "10 ms \u00b1 1 ms",
        "1 Gbit/s",
        "capture broker",
    ):
        assert expected in words
    assert svg.count('class="node"') == 5, "three groups and two segments"


@pytest.mark.skipif(shutil.which("dot") is None, reason="dot (graphviz) is not installed")
@pytest.mark.parametrize(
    ("name", "begin"), [("a.svg", b"<?xml"), ("a.png", b"\x89PNG\r\n"), ("a.PDF", b"%PDF-")]
)
def test_the_ending_of_the_file_names_its_format(name: str, begin: bytes, tmp_path: Path) -> None:
    output = tmp_path / name
    done = CliRunner().invoke(graph_command, [str(TOPOLOGIES / "pair.yaml"), "-o", str(output)])
    assert done.exit_code == 0, done.output
    assert output.read_bytes().startswith(begin)


@pytest.mark.parametrize("name", ["a.jpg", "a"])
def test_another_ending_is_refused(name: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(graph_command, [str(TOPOLOGIES / "pair.yaml"), "-o", str(tmp_path / name)])
    assert isinstance(done.exception, CliError) and done.exception.status == USAGE
    assert "end it in .svg, .png or .pdf" in done.exception.text
    assert not (tmp_path / name).exists()


def test_without_graphviz_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GraphError, match="apt-get install graphviz"):
        graph(make_plan(load(TOPOLOGIES / "pair.yaml")))
