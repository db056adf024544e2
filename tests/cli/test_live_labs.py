"""Tests commands on running labs of the fake driver: each change is visible to the next command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.lab.state import start_ticks

TOPOLOGIES = Path(__file__).resolve().parents[2] / "topologies"
PAIR = str(TOPOLOGIES / "pair.yaml")


@pytest.fixture
def pair(vnet: Any) -> Any:
    """Returns a command line with the lab `pair` up."""
    vnet("up", PAIR, "--kernel", "fake")
    return vnet


def inspected(vnet: Any) -> Any:
    return json.loads(vnet("inspect", "pair", "--json").stdout)


def test_up_ls_down(vnet: Any) -> None:
    assert json.loads(vnet("up", PAIR, "--kernel", "fake", "--json").stdout)["up"] is True
    (lab,) = json.loads(vnet("ls", "--json").stdout)
    assert (lab["lab"], lab["state"], lab["kernel"], lab["nodes"]) == ("pair", "up", "fake", 2)
    assert "lab pair: down" in vnet("down", "--all").stderr
    assert vnet.labs() == []


def test_a_name_in_use_is_refused_before_anything_is_made(pair: Any) -> None:
    before = sorted(pair.cwd.rglob("*"))
    for command in ("up", "run"):
        said = pair(command, PAIR, "--kernel", "fake", status=1).stderr
        assert (
            "lab pair: runs already; `vnet down pair` ends it, --lab NAME gives this one another name" in said
        )
    assert sorted(pair.cwd.rglob("*")) == before
    pair("up", PAIR, "--kernel", "fake", "--lab", "second")
    assert [lab["lab"] for lab in json.loads(pair("ls", "--json").stdout)] == ["pair", "second"]


def test_unknown_names_are_refused_with_what_exists(pair: Any) -> None:
    assert (
        'link "wan": the lab has no such link; its links: left-access'
        in pair("link", "pair", "wan", "--delay", "1 ms", status=1).stderr
    )
    assert (
        'nodes: "middle": no such node or group; nodes: left, right'
        in pair("exec", "pair", "middle", "--", "true", status=2).stderr
    )
    assert "lab pear: no such lab runs here; running: pair" in pair("inspect", "pear", status=1).stderr
    said = pair("restart", "pair", "right", "--software", "apache", status=1).stderr
    assert "right" in said and "mosquitto" in said
    assert (
        'group "middle": the lab has none of that name; its groups: left, right'
        in pair("add", "pair", "middle", status=2).stderr
    )
    assert (
        'group "left": sender takes part in the scenario, and a running lab begins no other'
        in pair("add", "pair", "left", status=2).stderr
    )


def test_set_is_read_back(pair: Any) -> None:
    pair("set", "pair", "left", "--mtu", "1400", "--hostname", "gauche", "--cpu-limit", "0.5 cores")
    node = inspected(pair)["nodes"]["left"]
    assert (node["interfaces"][0]["mtu"], node["hostname"]) == (1400, "gauche")
    assert node["limits"]["cpu_cores"] == 0.5
    assert "cannot share a host name" in pair("set", "pair", "*", "--hostname", "x", status=2).stderr


def test_nodes_stop_start_and_restart(pair: Any) -> None:
    pair("stop", "pair", "right")
    assert inspected(pair)["nodes"]["right"]["state"] == "stopped"
    pair("start", "pair", "right")
    assert inspected(pair)["nodes"]["right"]["state"] == "running"
    assert "restarted mosquitto" in pair("restart", "pair", "right", "--software", "mosquitto").stderr


def test_clones_have_free_names_and_addresses_and_can_go_again(pair: Any) -> None:
    added = json.loads(pair("add", "pair", "left", "-n", "2", "--idle", "--json").stdout)["added"]
    assert added == [{"node": "left2", "address": "10.20.0.3"}, {"node": "left3", "address": "10.20.0.4"}]
    nodes = inspected(pair)["nodes"]
    assert list(nodes) == ["left", "right", "left2", "left3"]
    assert nodes["left3"]["group"] == "left"
    assert len({card["mac"] for node in nodes.values() for card in node["interfaces"]}) == 4
    pair("remove", "pair", "left2")
    assert list(inspected(pair)["nodes"]) == ["left", "right", "left3"]
    assert json.loads(pair("add", "pair", "left", "--idle", "--json").stdout)["added"][0]["node"] == "left4"


def test_down_after_kill_9_of_the_lab_process(pair: Any) -> None:
    about = json.loads((pair.state / "pair" / "lab.json").read_text())
    (lab,) = [p for p in about["processes"] if p["role"] == "lab"]
    os.kill(lab["pid"], signal.SIGKILL)
    while (
        Path(f"/proc/{lab['pid']}/status").exists()
        and "Z (" not in Path(f"/proc/{lab['pid']}/status").read_text()
    ):
        time.sleep(0.01)
    (found,) = json.loads(pair("ls", "--json").stdout)
    assert found["state"] == "dead; vnet down pair clears it"
    assert "died" in pair("inspect", "pair", status=1).stderr
    pair("down", "pair")
    ended = json.loads((Path(about["run_dir"]) / "manifest.json").read_text())
    assert (ended["state"], ended["suspect"]) == ("interrupted", True) and "was killed" in ended["error"]
    assert pair.labs() == []


@pytest.fixture
def virtual(vnet: Any) -> Iterator[Any]:
    """Yields a command line that finds the state directory of a lab in virtual time, with a living process
    but without a socket.
    """
    directory = vnet.state / "slow"
    directory.mkdir(parents=True)
    owner = subprocess.Popen(["sleep", "60"])
    living = {"role": "lab", "pid": owner.pid, "start_ticks": start_ticks(owner.pid)}
    about = {"lab": "slow", "kernel": "uml", "time": "virtual", "run_dir": "/nowhere", "processes": [living]}
    (directory / "lab.json").write_text(json.dumps(about))
    yield vnet
    owner.kill()
    owner.wait()


def test_ls_says_that_a_lab_runs_in_virtual_time(virtual: Any) -> None:
    (found,) = json.loads(virtual("ls", "--json").stdout)
    assert (found["lab"], found["state"]) == ("slow", "running: virtual time")


@pytest.mark.parametrize(
    "words",
    ["exec slow a -- true", "inspect slow", "set slow a --mtu 1400", "link slow wan --down", "stop slow a",
     "start slow a", "restart slow a", "add slow a", "remove slow a", "inventory slow"],
)  # fmt: skip
def test_commands_on_a_lab_in_virtual_time_say_why_they_refuse(virtual: Any, words: str) -> None:
    said = virtual(*words.split(), status=1).stderr
    assert "lab slow: runs in virtual time and takes no commands" in said
    assert "put the command into the timeline of its file" in said


def test_run_keep_leaves_the_lab_up(vnet: Any) -> None:
    said = vnet("run", PAIR, "--kernel", "fake", "--keep", "-p", "hold=2 s")
    assert "lab pair stays up" in said.stderr
    assert "messages received" in said.stdout
    assert json.loads(vnet("ls", "--json").stdout)[0]["state"] == "up"
    vnet("down", "pair")
