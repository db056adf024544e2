"""Tests `vnet import` through the real command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import TOPOLOGIES, CommandLine

from orchestrator.cli.errors import CliError
from orchestrator.cli.importing import DRAFT, imported
from orchestrator.cli.main import main
from orchestrator.cli.run import run_command
from orchestrator.exchange.network import Lan, Machine, Network
from orchestrator.language.problem import TopologyError

sys.path.insert(0, str(Path(__file__).parents[1] / "exchange"))

import kathara_lab
from containerlab_lab import write


def test_a_containerlab_topology_is_imported_once_and_said(vnet: CommandLine) -> None:
    file = write(vnet.cwd)
    said = vnet("import", "containerlab", str(file)).stderr
    assert "two-routers.yaml: 4 nodes, 3 links and segments" in said
    assert "left out: line 2: mgmt: no counterpart" in said and "changed: node R1 is r1 here" in said
    assert "good: 4 nodes" in vnet("check", "two-routers.yaml").stdout
    assert "exists already" in vnet("import", "containerlab", str(file), status=2).stderr


def test_what_was_imported_is_run_at_once_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(argv: list[str], **_: object) -> int:
        ran.append(argv)
        return 5

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_command, "main", run)
    assert main(["import", "containerlab", str(write(tmp_path)), "--run"]) == 5, "the run's own status"
    assert ran == [["two-routers.yaml"]] and (tmp_path / "two-routers.yaml").exists()


def test_what_cannot_be_is_refused_and_nothing_written(vnet: CommandLine) -> None:
    file = write(vnet.cwd)
    file.write_text(file.read_text().replace("kind: linux", "kind: ceos"))
    assert 'the kind "ceos" cannot be' in vnet("import", "containerlab", str(file), status=3).stderr
    assert not list(vnet.cwd.glob("*.yaml"))


def test_a_draft_is_replaced_by_the_next_import_and_a_kept_one_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def network(subnet: str) -> Network:
        lan = Lan("lan", [("a", "eth0"), ("b", "eth0")], subnet=subnet)
        return Network("two", "a test", machines={one: Machine(one) for one in "ab"}, lans={"lan": lan})

    file = tmp_path / "two.yaml"
    for _ in range(2):
        with pytest.raises(TopologyError):
            imported(network("127.0.0.0/24"), file, False)
    assert f"{file} is a draft" in capsys.readouterr().err
    edited = file.read_text().removesuffix(DRAFT)
    assert imported(network("10.5.0.0/24"), file, False) == 0
    assert DRAFT not in file.read_text() and "10.5.0.0/24" in file.read_text()
    file.write_text(edited)
    with pytest.raises(CliError, match="exists already"):
        imported(network("10.5.0.0/24"), file, False)


def test_a_topology_is_exported(vnet: CommandLine) -> None:
    ring = str(TOPOLOGIES / "ring.yaml")
    assert "left out: segment west: make the bridge first" in vnet("export", "containerlab", ring).stderr
    vnet("export", "mininet", ring, "-o", "ring.py")
    assert "addSwitch('west', dpid='1')" in (vnet.cwd / "ring.py").read_text()
    assert vnet("export", "dot", ring).stdout.startswith("graph lab {")
    assert (
        "is a virtual machine" in vnet("export", "mininet", str(TOPOLOGIES / "mqtt-vm.yaml"), status=3).stderr
    )


def test_a_script_of_mininet_is_imported_once_and_said(vnet: CommandLine) -> None:
    script = (
        "from mininet.topolib import TreeNet\nnet = TreeNet(depth=1, fanout=2)\nnet['h1'].cmd('iperf -s &')\n"
    )
    (vnet.cwd / "tree.py").write_text(script)
    said = vnet("import", "mininet", "tree.py").stderr
    assert "tree.yaml: 2 nodes" in said and "h1: `iperf -s" in said
    assert "good: 2 nodes" in vnet("check", "tree.yaml").stdout
    (vnet.cwd / "bad.py").write_text("1 / 0")
    assert "bad.py:1: fails (ZeroDivisionError" in vnet("import", "mininet", "bad.py", status=3).stderr


def test_a_lab_of_kathara_is_imported_once_and_said(vnet: CommandLine) -> None:
    lab = kathara_lab.write(vnet.cwd)
    said = vnet("import", "kathara", str(lab)).stderr
    assert "two-routers.yaml: 5 nodes, 3 links and segments from Kathará, Two Routers" in said
    assert "changed: node PC1 is pc1 here" in said
    assert "good: 5 nodes" in vnet("check", "two-routers.yaml").stdout
    assert "is not there" in vnet("import", "kathara", str(vnet.cwd), status=3).stderr


def test_a_scenario_of_core_is_imported_and_said(vnet: CommandLine) -> None:
    link = '<link node1="1" node2="2"><options delay="9000"/></link>'
    devices = '<device id="1" name="a"/><device id="2" name="b"/>'
    (vnet.cwd / "two.xml").write_text(
        f"<scenario><devices>{devices}</devices><links>{link}</links></scenario>"
    )
    assert "two.yaml: 2 nodes, 1 links" in vnet("import", "core", "two.xml").stderr
    assert 'delay: "9000 us"' in (vnet.cwd / "two.yaml").read_text()
    (vnet.cwd / "bad.xml").write_text("<scenario>")
    assert "bad.xml:1: is not XML" in vnet("import", "core", "bad.xml", status=3).stderr


def test_projects_of_gns3_and_netlab_are_imported_with_stand_ins_where_that_is_asked_for(
    vnet: CommandLine,
) -> None:
    (vnet.cwd / "two.yml").write_text("nodes: [a, b]\nmodule: [ospf]\nlinks: [a-b]\n")
    assert "or use --stand-ins" in vnet("import", "netlab", "two.yml", status=3).stderr
    vnet("import", "netlab", "two.yml", "--stand-ins", "-o", "netlab.yaml")
    assert "good: 2 nodes" in vnet("check", "netlab.yaml").stdout
    nodes = [{"name": name, "node_id": name, "node_type": "qemu"} for name in "ab"]
    ends = [{"node_id": name, "adapter_number": 0, "port_number": 0} for name in "ab"]
    project = {"revision": 9, "topology": {"nodes": nodes, "links": [{"nodes": ends}]}}
    (vnet.cwd / "two.gns3").write_text(json.dumps(project))
    assert "qemu: a cannot be taken over" in vnet("import", "gns3", "two.gns3", status=3).stderr
    said = vnet("import", "gns3", "two.gns3", "--stand-ins", "-o", "gns3.yaml").stderr
    assert "a: its system (qemu): a plain router stands for it" in said
    assert "good: 2 nodes" in vnet("check", "gns3.yaml").stdout
