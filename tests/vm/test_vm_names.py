"""Tests that machines find light nodes and each other by name."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest
from lab_plans import machine, node
from vm_agents import FakeChannel, Told, guest_of

from contract.plan import Node
from orchestrator.images import seed
from orchestrator.lab.clock import JumpingClock
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import Exec
from orchestrator.lab.vm import dialogue, names


def nodes() -> list[Node]:
    return [machine(node("demo", 0, "a")), node("demo", 1, "light")]


def test_a_machines_block_has_all_nodes_and_its_own_host_name() -> None:
    a, light = nodes()
    text = names.block([a, light], a)
    assert f"{a.interfaces[0].address} a\n" in text and f"{light.interfaces[0].address} light\n" in text
    assert "127.0.1.1" not in text, "its own name is its address"
    assert "127.0.1.1 plc-7\n" in names.block([a, light], dataclasses.replace(a, hostname="plc-7"))


def written(etc: Path, text: str) -> str:
    """Runs the script and returns the resulting /etc/hosts."""
    script = names.SCRIPT.replace("/etc/", f"{etc}/")
    subprocess.run(["/bin/sh", "-c", script, text], check=True)
    return (etc / "hosts").read_text()


def test_the_machines_own_lines_stay_and_a_later_block_takes_the_place_of_the_first(tmp_path: Path) -> None:
    a, light = nodes()
    assert "light\n" in written(tmp_path, names.block([a, light], a)), "a built-in image has no such file"
    assert (tmp_path / "nsswitch.conf").read_text() == "hosts: files dns\n"
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n10.1.1.1 mirror\n")
    (tmp_path / "nsswitch.conf").write_text("hosts: files\n")
    written(tmp_path, names.block([a, light], a))
    text = written(tmp_path, names.block([a], a))
    assert text.startswith("127.0.0.1 localhost\n10.1.1.1 mirror\n# vnet: the nodes of this lab\n")
    assert text.endswith(" a\n# vnet: end\n") and "light" not in text
    assert (tmp_path / "nsswitch.conf").read_text() == "hosts: files\n"


def test_names_are_written_when_a_machine_is_configured_and_again_when_nodes_change(tmp_path: Path) -> None:
    guest, channel, told = guest_of(tmp_path), FakeChannel(), Told()
    guest.channel, guest.state = channel, "running"  # type: ignore[assignment]
    made = names.Names(Loop(JumpingClock(0)), nodes, told.warn)
    ended: list[str | None] = []
    dialogue.begin(guest, made.written(guest), lambda _, error: ended.append(error))
    channel.answer(status=0)
    made.renew([guest])
    assert [type(r) for r in channel.seen] == [Exec, Exec] and ended == [None] and told.warnings == []
    channel.answer(status=1)
    ((code, text, _),) = told.warnings
    assert code == "names" and text.startswith("nodes.a: /etc/hosts cannot be written (status 1)")
    guest.state = "stopped"
    made.renew([guest])
    assert len(channel.seen) == 2, "one that is off gets them when it boots"


@pytest.mark.parametrize("theirs", [True, "localhost"])
def test_cloud_init_leaves_the_file_to_the_agent_unless_asked(theirs: object) -> None:
    assert seed.merged({})["manage_etc_hosts"] is False
    assert seed.merged({"manage_etc_hosts": theirs})["manage_etc_hosts"] == theirs
