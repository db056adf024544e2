"""Tests Ansible's connection to nodes under both kernels: commands, files byte for byte, and unreachable
nodes.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
from pathlib import Path

import pytest
from ansible_running import AGENT, SITE_LAB, Controller

from orchestrator.kernel.uml.binaries import find_binaries

THROUGH = Path(__file__).with_name("through_the_connection.yml")
PING = Path(__file__).with_name("ping.yml")

pytestmark = pytest.mark.skipif(not AGENT.exists(), reason="the agent is not built (make setup)")
KERNELS = [
    pytest.param(
        "host",
        marks=[
            pytest.mark.root,
            pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of the machine need root"),
        ],
    ),
    pytest.param(
        "uml",
        marks=[
            pytest.mark.uml,
            pytest.mark.skipif(not find_binaries(), reason="no User-Mode Linux kernel"),
        ],
    ),
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_commands_and_files(controller: Controller, kernel: str) -> None:
    sent = random.Random(3).randbytes(300_001)  # several full chunks and an incomplete one
    (controller.cwd / "sent").write_bytes(sent)
    controller.vnet("up", "site.yaml", "--kernel", kernel)
    played = controller.play(THROUGH, "-e", f"here={controller.cwd}", lab=SITE_LAB)
    assert played.status == 0, played.text
    assert (controller.cwd / "returned").read_bytes() == sent


def test_a_lab_that_is_not_there(controller: Controller) -> None:
    played = controller.play(PING, "-e", "vnet_lab=nowhere", inventory=_one_node(controller))
    assert played.recap() == {"server": (0, 1, 0)}
    assert "lab nowhere: no such lab runs here" in played.text and "`vnet up FILE` starts one" in played.text


def test_no_lab_named(controller: Controller) -> None:
    played = controller.play(PING, inventory=_one_node(controller))
    assert played.status != 0
    assert "no lab is named; use -i inventory/lab, or set vnet_lab" in played.text


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of the machine need root")
def test_nodes_and_labs_that_are_gone(controller: Controller) -> None:
    controller.vnet("up", "site.yaml", "--kernel", "host")
    inventory = _one_node(controller)
    played = controller.play(
        PING, "-e", f"vnet_lab={SITE_LAB}", "-e", "vnet_node=middle", inventory=inventory
    )
    assert played.recap() == {"server": (0, 1, 0)}
    assert (
        f"lab {SITE_LAB}, node middle:" in played.text
        and f"`vnet inspect {SITE_LAB}` shows its nodes" in played.text
    )
    processes = json.loads((controller.state / SITE_LAB / "lab.json").read_text())["processes"]
    (lab,) = [p["pid"] for p in processes if p["role"] == "lab"]
    ended = os.pidfd_open(lab)
    os.kill(lab, signal.SIGKILL)
    assert select.select([ended], [], [], 10)[0]
    os.close(ended)
    played = controller.play(PING, "-e", f"vnet_lab={SITE_LAB}", inventory=inventory)
    assert played.recap() == {"server": (0, 1, 0)}
    assert f"its process has died; `vnet down {SITE_LAB}` removes what is left" in played.text


def _one_node(controller: Controller) -> str:
    inventory = controller.cwd / "one.yml"
    inventory.write_text("all: {hosts: {server: {ansible_connection: vnet}}}\n")
    return str(inventory)
