"""Tests the playbooks: deploy and collect on a running lab, the preparation of a server, and ansible-lint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_running import AGENT, PLAYBOOKS, PROJECT, SITE_LAB, Controller, Played

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of the machine need root")
PATTERNS = ("deploy_brokers=server", "deploy_clients=group_smart_meter", "deploy_utilities=kind_light")


@pytest.mark.root
@ROOT
@pytest.mark.skipif(not AGENT.exists(), reason="the agent is not built (make setup)")
def test_deploy_and_collect_twice(controller: Controller) -> None:
    own = controller.cwd / "own"
    own.write_text("a program of our own")
    extra = {"utility_files": [{"src": str(own), "dest": "bin/own", "mode": "0755"}]}
    arguments = [word for pattern in PATTERNS for word in ("-e", pattern)] + ["-e", json.dumps(extra)]
    controller.vnet("up", "site.yaml", "--kernel", "host")
    first = controller.play(PLAYBOOKS / "deploy.yml", *arguments, lab=SITE_LAB)
    # The changes are the broker's settings and start, and on each node a directory and a file.
    assert first.changed() >= 5, first.text
    again = controller.play(PLAYBOOKS / "deploy.yml", *arguments, lab=SITE_LAB)
    assert again.changed() == 0, again.text
    said = controller.vnet("exec", SITE_LAB, "server", "--", "cat", "/proc/net/tcp").stdout
    assert f":{1883:04X} " in said  # the broker listens in the node, not on this machine

    into = ["-e", f"collect_to={controller.cwd}/collected"]
    assert controller.play(PLAYBOOKS / "collect.yml", *into, lab=SITE_LAB).changed() >= 1
    assert controller.play(PLAYBOOKS / "collect.yml", *into, lab=SITE_LAB).changed() == 0
    log = (controller.cwd / f"collected/{SITE_LAB}/server/mosquitto.log").read_text()
    assert "New client connected from 10.31.0." in log

    controller.vnet("down", SITE_LAB)
    assert str(controller.state) not in _command_lines()  # a node's programs have ended with it


@pytest.mark.parametrize("playbook", ["deploy.yml", "collect.yml"])
def test_without_a_lab_nothing_is_done(controller: Controller, playbook: str) -> None:
    played = controller.play(PLAYBOOKS / playbook, lab="nowhere")
    assert played.status != 0
    assert "VNET_LAB names one for" in played.text
    assert "lab nowhere: no such lab runs here" in played.text


@pytest.mark.skipif(not Path("/usr/bin/dpkg-query").exists(), reason="lab hosts run Debian")
def test_what_would_change_on_this_machine_can_be_asked(controller: Controller) -> None:
    """Shows that `--check --diff` on this machine, as in docs/lab-staff.md, works with any Python first on
    the PATH.
    """
    shims = controller.cwd / "shims"
    shims.mkdir()
    for name in ("python3", "python3.11", "python3.13"):
        (shims / name).write_text("#!/bin/sh\necho no such version >&2\nexit 127\n")
        (shims / name).chmod(0o755)
    looked = controller.play(
        PLAYBOOKS / "host.yml", "--check", "--diff", "-e", '{"lab_host_become": false}',
        inventory=str(PROJECT / "inventory" / "hosts.yml"), path=f"{shims}:{os.environ['PATH']}",
    )  # fmt: skip
    assert looked.status == 0, looked.text
    assert "here" in looked.recap()


@pytest.mark.root
@ROOT
@pytest.mark.slow
def test_a_server_is_made_ready_once(controller: Controller, bare_server: int) -> None:
    inside, settings_here = Path(f"/proc/{bare_server}/root"), _settings_of(Path("/"))
    inventory = controller.cwd / "server.yml"
    variables = {"ansible_connection": "inside", "inside_pid": bare_server, "ansible_pipelining": True}
    inventory.write_text(json.dumps({"lab_hosts": {"hosts": {"server": variables}}}))
    packages = {"lab_host_package_sets": [], "lab_host_more_packages": ["hostname", "frr", "mosquitto"]}
    small = packages | {"lab_host_hugepages": 64}
    started = inside / "etc/systemd/system/multi-user.target.wants"  # units that start with the server
    before = {link.name for link in started.iterdir()}
    assert "frr.service" in before

    def play(*more: str, **settings: object) -> Played:
        extra = json.dumps(small | settings)
        return controller.play(PLAYBOOKS / "host.yml", "-e", extra, *more, inventory=str(inventory))

    refused = play(lab_host_users=["nobody-of-that-name"])
    assert refused.status != 0 and "`adduser nobody-of-that-name` makes it" in refused.text
    foretold = play("--check", lab_host_users=["games", "news"])
    assert foretold.changed() >= 5 and "would install mosquitto" in foretold.text
    assert not (inside / "etc/sysctl.d/60-vnet.conf").exists()
    assert play(lab_host_users=["games", "news"]).changed() >= 5
    assert "vm.nr_hugepages = 64" in (inside / "etc/sysctl.d/60-vnet.conf").read_text()
    assert "@vnet - nofile 65536" in (inside / "etc/security/limits.d/60-vnet.conf").read_text()
    groups = (inside / "etc/group").read_text().splitlines()
    assert {g.split(":")[0] for g in groups if "games" in g.rpartition(":")[2].split(",")} == {"vnet"}
    assert _kernel_arguments(inside) == "quiet intel_iommu=on iommu=pt"
    assert (inside / "usr/sbin/mosquitto").exists()
    assert {link.name for link in started.iterdir()} == before
    assert "mosquitto" not in {comm.read_text().strip() for comm in inside.glob("proc/[0-9]*/comm")}
    again = play(lab_host_users=["games", "news"])
    assert again.changed() == 0, again.text
    # this machine's settings are unchanged, whether it is a lab host or not
    assert _settings_of(Path("/")) == settings_here


def _settings_of(root: Path) -> list[str | None]:
    """Returns the contents of the files that host.yml writes; None for one that does not exist."""
    files = [root / "etc/sysctl.d/60-vnet.conf", root / "etc/security/limits.d/60-vnet.conf"]
    return [file.read_text() if file.exists() else None for file in files]


def _kernel_arguments(root: Path) -> str:
    """Returns the setting that update-grub would use, which reads /etc/default/grub and then the files of
    grub.d.
    """
    script = f". {root}/etc/default/grub; . {root}/etc/default/grub.d/60-vnet.cfg; echo $GRUB_CMDLINE_LINUX"
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def _command_lines() -> str:
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(process.read_text().replace("\0", " "))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return "\n".join(line for line in found if "mosquitto" in line)


def test_lint_has_nothing_to_say() -> None:
    program = str(Path(sys.executable).with_name("ansible-lint"))
    argv = [program, "--offline", "--profile", "production", "--nocolor", "playbooks", "inventory"]
    path = f"{Path(program).parent}:{os.environ['PATH']}"
    done = subprocess.run(argv, cwd=PROJECT, env=os.environ | {"PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
