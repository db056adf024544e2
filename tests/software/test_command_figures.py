"""Tests that a command's figures are in the plan, also beside flows, and that `mounts.copy` is checked."""

from __future__ import annotations

import pytest
from test_command_flows import FILE

from contract.figures import KEY
from contract.plan import Plan
from orchestrator.lab.sandbox import mounts
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

SENDS = "        command: ./send\n"


def planned(text: str) -> Plan:
    return make_plan(parse("own.yaml", text.encode()))


def test_figures_stand_beside_accounts() -> None:
    plan = planned(FILE.replace(SENDS, f"{SENDS}        figures: {{from: log, format: hey}}\n"))
    meter = next(node for node in plan.nodes if node.name == "meter1")
    assert meter.software[0].spec[KEY] == "hey" and meter.software[0].spec["accounts"]["sends"]
    assert all(KEY not in one.spec for node in planned(FILE).nodes for one in node.software)


def with_copy(paths: str) -> str:
    return FILE.replace("deaf: {segment: far,", f"deaf: {{segment: far, mounts: {{copy: {paths}}},")


def test_a_node_has_copies_of_directories() -> None:
    deaf = next(node for node in planned(with_copy("[/etc, /var/lib]")).nodes if node.name == "deaf")
    assert mounts(deaf)["copy"] == ["/etc", "/var/lib"]


@pytest.mark.parametrize("path", ["/usr", "/", "/home/me", "etc", "/var/../usr"])
def test_copies_are_of_etc_and_var_only(path: str) -> None:
    with pytest.raises(TopologyError, match=r"nodes.deaf.mounts.copy\[0\]"):
        planned(with_copy(f'["{path}"]'))


def test_a_directory_and_one_in_it_are_one_copy() -> None:
    with pytest.raises(TopologyError, match="is in /var, which is copied, too"):
        planned(with_copy("[/var, /var/lib]"))


def test_keys_of_tls_without_a_capture_are_told_with_their_line() -> None:
    text = FILE.replace(SENDS, f"{SENDS}        tls_keys: true\n")
    line = text.split("\n").index("        tls_keys: true") + 1
    place = (
        rf"own\.yaml:{line}: groups\.meter\.software\.\w+\.tls_keys: keeps keys, and no capture keeps packets"
    )
    with pytest.raises(TopologyError, match=place):
        planned(text)
    planned(text + "captures: {far: {at: node deaf}}\n")
