"""Tests that Ansible never evaluates a lab's text, and that files collected from nodes stay in their
directory.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from sandboxed import ROOT

from orchestrator.cli.inventory import hostvars, inventory

TEMPLATE = "{{ lookup('pipe', 'touch owned') }}{% set x = 1 %}{# x #}"
NODE: dict[str, Any] = {
    "interfaces": [{"name": "eth0", "address": TEMPLATE, "segment": "lan"}],
    "kind": "light",
    "group": "a",
    "roles": ["client"],
    "state": "up",
    "hostname": TEMPLATE,
    "directory": f"/{TEMPLATE}",
}


def ansible(folder: Path, inventory_file: Path, expression: str) -> str:
    program = str(Path(sys.executable).with_name("ansible"))
    done = subprocess.run(
        [
            program,
            "-i",
            str(inventory_file),
            "a",
            "-e",
            "ansible_connection=local",
            "-m",
            "debug",
            "-a",
            f"msg={expression}",
        ],
        cwd=folder,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "ANSIBLE_STDOUT_CALLBACK": "minimal",
            "LC_ALL": "C.UTF-8",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said: str = json.loads(done.stdout.partition("=> ")[2])["msg"]
    return said


def test_what_a_lab_says_is_never_evaluated(tmp_path: Path) -> None:
    status = {"run_dir": f"/results/{TEMPLATE}", "kernel": {"kind": TEMPLATE}}
    found = inventory("lab", f"/state/{TEMPLATE}", status, {"a": NODE})
    script = tmp_path / "lab"
    script.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(found)}\nEND\n")
    script.chmod(0o755)
    values = "{{ [vnet_hostname, vnet_kernel, vnet_run_dir, vnet_state_dir, vnet_address, vnet_directory] | join(' ') }}"
    said = ansible(tmp_path, script, values)
    assert said.count(TEMPLATE) == 6 and not (tmp_path / "owned").exists()


def test_plain_values_stay_plain() -> None:
    plain = {**NODE, "interfaces": [], "hostname": "a", "directory": "/d"}
    found = inventory("lab", "/s", {"run_dir": "/r", "kernel": {"kind": "host"}}, {"a": plain})
    assert found["_meta"]["hostvars"]["a"] == hostvars("a", plain)


@pytest.mark.parametrize(
    ("path", "lands"),
    [
        ("/lab/nodes/a/logs/x.log", "logs/x.log"),
        ("/lab/nodes/a/../../../etc/cron.d/x.conf", "etc/cron.d/x.conf"),
        ("/var/log/x.log", "var/log/x.log"),
    ],
)
def test_collected_files_land_below_where_they_are_collected(path: str, lands: str, tmp_path: Path) -> None:
    plays = YAML(typ="safe").load((ROOT / "playbooks" / "collect.yml").read_text())
    (fetch,) = (task for task in plays[1]["tasks"] if "ansible.builtin.fetch" in task)
    variables = {"ansible_connection": "local", "collect_to": "/to", "vnet_lab": "lab", "vnet_directory": "/lab/nodes/a",
                 "item": {"path": path}}  # fmt: skip
    hosts = tmp_path / "hosts.json"
    hosts.write_text(json.dumps({"all": {"hosts": {"a": variables}}}))
    assert ansible(tmp_path, hosts, fetch["ansible.builtin.fetch"]["dest"]) == f"/to/lab/a/{lands}"
