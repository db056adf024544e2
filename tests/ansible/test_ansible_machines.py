"""Tests the playbooks deploy and collect on a VM that boots a user's own disk and has no network except the
lab's.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from ansible_running import PLAYBOOKS, Controller, Played

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))
from lab_running import vm_missing

from orchestrator.images import locate

MISSING = vm_missing("debian")
# A copy of the image `debian` serves as the user's disk. It has mosquitto, whose unit is masked, and lacks
# mosquitto-clients and bc.
LAB = f"cloud-{os.getpid()}"
SITE = """\
name: LAB
segments:
  lan: {subnet: 10.33.0.0/24}
nodes:
  server:
    segment: lan
    kind: vm
    image: own.qcow2
    boot_within: 600 s
    cloud_init:
      users: [{name: ada, ssh_authorized_keys: [ssh-ed25519 AAAA ada@lab]}]
      write_files: [{path: /etc/motto, content: measure twice}]
  meter: {segment: lan}
"""
WITHIN_S = 900


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
def test_deploy_and_collect_on_a_machine_twice(controller: Controller) -> None:
    own = controller.cwd / "own"
    own.write_text("#!/bin/sh\necho our own program\n")
    extra = {
        "deploy_brokers": "server",
        "deploy_clients": "server",
        "deploy_utilities": "server",
        "utility_packages": ["iproute2", "bc"],
        "utility_files": [{"src": str(own), "dest": "/usr/local/bin/own", "mode": "0755"}],
    }

    def play(playbook: str, **settings: object) -> Played:
        told = json.dumps(extra | settings)
        return controller.play(PLAYBOOKS / playbook, "-e", told, lab=LAB, within_s=WITHIN_S)

    def said(*argv: str, status: int = 0) -> str:
        return controller.vnet("exec", LAB, "server", "--", *argv, status=status).stdout

    (controller.cwd / "cloud.yaml").write_text(SITE.replace("LAB", LAB, 1))
    shutil.copyfile(str(locate("debian").disk), controller.cwd / "own.qcow2")
    controller.vnet("up", "cloud.yaml", "--kernel", "host")
    assert "status: done" in said("cloud-init", "status", "--wait")
    assert "ada@lab" in said("cat", "/home/ada/.ssh/authorized_keys")
    assert said("cat", "/etc/motto") == "measure twice"
    said("sh", "-c", "! command -v mosquitto_pub && ! command -v bc")

    first = play("deploy.yml")
    # The changes are two sets of packages, the broker's file and state, and a file of the test.
    assert first.changed() >= 6, first.text
    again = play("deploy.yml")
    assert again.changed() == 0, again.text
    assert said("sh", "-c", "echo 6*7 | bc").strip() == "42"
    assert said("own").strip() == "our own program"
    assert said("systemctl", "is-enabled", "mosquitto").strip() == "enabled"
    sub = ("mosquitto_sub", "-h", "10.33.0.1", "-t", "$SYS/broker/version", "-C", "1")
    heard = controller.vnet("exec", LAB, "meter", "--", *sub)
    assert "mosquitto version" in heard.stdout, "from another node, over the lab's network"

    into = f"{controller.cwd}/collected"
    assert play("collect.yml", collect_to=into).changed() >= 1
    assert play("collect.yml", collect_to=into).changed() == 0
    logs = controller.cwd / "collected" / LAB / "server" / "var" / "log"
    assert "install mosquitto-clients:amd64" in (logs / "dpkg.log").read_text()
