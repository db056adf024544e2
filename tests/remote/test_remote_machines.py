"""Tests virtual machines on another machine: the libvirt URI in the topology file, images that are copied
there, consoles here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import CommandLine
from far_machine import FarMachine
from lab_running import needs_vm
from vm_running import Daemon, daemon

from orchestrator.images import locate
from orchestrator.kernel.remote.lab_access import stream

__all__ = ["daemon"]  # a fixture
LAB = f"remote-vm-{os.getpid()}"
TOPOLOGY = """\
name: {lab}
libvirt: qemu+ssh://root@127.0.0.1:{port}/system{query}
segments: {{lan: {{subnet: 10.9.0.0/24}}}}
nodes:
  guest: {{segment: lan, kind: vm}}
  light: {{segment: lan}}
"""


def python_of_the_machine() -> bool:
    """Returns whether the machine's own Python, which ssh sessions use, has libvirt's binding and jinja2."""
    asked = ["/usr/bin/python3", "-c", "import libvirt, jinja2"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    needs_vm,
    pytest.mark.skipif(
        not python_of_the_machine(), reason="needs libvirt for the system's Python: images/packages.sh far"
    ),
]


def test_a_machine_there_is_worked_on_from_here(
    vnet: CommandLine, far: FarMachine, daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vnet.more = {"VNET_SSH": "ssh -F /dev/null -o IdentitiesOnly=yes"}  # the URI contains the rest
    monkeypatch.setenv("VNET_SSH", vnet.more["VNET_SSH"])
    import libvirt  # type: ignore[import-untyped]

    far.stop()
    # This lets the daemon see these mounts, as a server's daemon sees all of its machine.
    far.state = daemon.states
    far.start()
    query = f"keyfile={far.place}/mine&known_hosts={far.place}/known&{daemon.uri.partition('?')[2]}"
    file = tmp_path / "remote-vm.yaml"
    file.write_text(TOPOLOGY.format(lab=LAB, port=far.port, query=f"?{query}"))
    vnet("check", str(file))
    vnet("up", str(file))
    carried = far.place / "cache" / "vnet" / "images" / locate("builtin").directory.name
    assert (carried / "image.json").exists(), "the image was carried there"
    connection = libvirt.open(daemon.uri)
    assert [d.name() for d in connection.listAllDomains()] == [f"vnet-{LAB}.guest"]
    here = vnet("exec", LAB, "light", "--", "uname", "-r").stdout
    assert vnet("exec", LAB, "guest", "--", "uname", "-n").stdout == "guest\n"
    assert vnet("exec", LAB, "guest", "--", "uname", "-r").stdout != here == f"{os.uname().release}\n"
    vnet("exec", LAB, "light", "--", "ping", "-c", "2", "-W", "3", "10.9.0.1")
    vnet("exec", LAB, "guest", "--", "sh", "-c", "echo said on the console >/dev/ttyS0")
    assert "said on the console" in vnet("console", LAB, "guest", "--log").stdout
    with stream(vnet.state / LAB, "vm/guest/console.sock") as line:
        line.settimeout(20)
        vnet("exec", LAB, "guest", "--", "sh", "-c", "echo live >/dev/ttyS0")
        assert b"live" in line.recv(100)
    with pytest.raises(FileNotFoundError):
        stream(vnet.state / LAB, "vm/light/console.sock")
    owner = json.loads((vnet.state / LAB / "lab.json").read_text())["processes"][0]["pid"]
    os.kill(owner, signal.SIGKILL)
    vnet("down", LAB)
    assert connection.listAllDomains() == []
    (run,) = (tmp_path / "results" / LAB).iterdir()
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["kernel"]["machine"] == f"ssh://root@127.0.0.1:{far.port}/host"
    assert "said on the console" in (run / "raw" / "logs" / "guest.console.log").read_text()
    assert far.left() == [], "its states go with the daemon, before the fixture looks"
