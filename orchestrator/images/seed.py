"""Makes the NoCloud seed of a node with a disk: its identity, the user's cloud-init settings, and vNET's
agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.images import iso
from orchestrator.images.errors import ImageError
from orchestrator.images.find import agent_binary
from orchestrator.images.model import Image
from orchestrator.images.recipe import GUEST
from orchestrator.images.run import run

_LINE = re.compile(r"^\s*(?:(?P<name>\S+) => )?(?P<path>/\S+) \(0x", re.MULTILINE)
_LOADER = re.compile(r"ld-linux[^/]*\.so\.\d+$")
LABEL = "cidata"
# cloud-init runs bootcmd early at every boot. The agent brings its libraries, because a guest's own may be
# older.
START = "mkdir -p /run/vnet/seed && mount -o ro -L cidata /run/vnet/seed && sh /run/vnet/seed/start-agent.sh"


def write_seed(
    path: Path,
    image: Image,
    *,
    lab: str,
    node: str,
    hostname: str,
    user_data: Mapping[str, Any],
    networks: Sequence[Mapping[str, Any]] = (),
    agent: Path | None = None,
) -> None:
    """Writes the seed to `path`: an ISO 9660 image with cloud-init's identity, user and network settings,
    and with the agent, its libraries and the script that starts it.

    `networks` has {mac, address, prefix} of interfaces that cloud-init configures; if empty, it configures
    none. `agent`: None stands for the one that `agent_binary` finds. Raises ImageError if the user's
    bootcmd is no list, or if the agent is missing or not a program of this machine.
    """
    files = {
        "meta-data": _json({"instance-id": f"{lab}.{node}", "local-hostname": hostname}),
        "user-data": b"#cloud-config\n" + _json(merged(user_data)),
        "network-config": _json(network_config(networks)),
        "start-agent.sh": (GUEST / "start-agent.sh").read_bytes(),
        **with_libraries(agent or agent_binary()),
    }
    path.write_bytes(iso.image(LABEL, files))


def _json(value: Any) -> bytes:
    """Returns the value as JSON, which is YAML too; equal values give equal bytes."""
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def merged(user_data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the user's cloud-config with the command that starts the agent before its bootcmd, and with
    manage_etc_hosts false unless the user sets it.

    Raises ImageError if bootcmd is no list.
    """
    theirs = user_data.get("bootcmd", [])
    if not isinstance(theirs, list):
        raise ImageError(f"cloud_init.bootcmd: {theirs!r} is no list; write a list of commands")
    # `manage_etc_hosts: true` is not set, because cloud-init would then overwrite the node names that the
    # agent wrote to /etc/hosts.
    return {"manage_etc_hosts": False, **user_data, "bootcmd": [["sh", "-c", START], *theirs]}


def network_config(networks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns cloud-init's network settings, which name interfaces by MAC address. Without `networks` they
    disable cloud-init's network setup, since the agent sets the interfaces up.
    """
    if not networks:
        return {"config": "disabled"}
    ethernets = {
        f"eth{i}": {
            "match": {"macaddress": n["mac"]},
            "set-name": f"eth{i}",
            "addresses": [f"{n['address']}/{n['prefix']}"],
        }
        for i, n in enumerate(networks)
    }
    return {"version": 2, "ethernets": ethernets}


def with_libraries(program: Path) -> dict[str, bytes]:
    """Returns the program as `vnet-agent`, its loader as `ld.so`, and its libraries: file name -> content.

    Raises ImageError if the program names no dynamic loader.
    """
    found = {m["name"] or Path(m["path"]).name: Path(m["path"]) for m in _LINE.finditer(_listed(program))}
    loaders = [name for name in found if _LOADER.search(name)]
    if not loaders:
        raise ImageError(f"{program}: its dynamic loader is unknown; is it a Linux program of this machine?")
    files = {name: path.read_bytes() for name, path in found.items() if name not in loaders}
    return {"vnet-agent": program.read_bytes(), "ld.so": found[loaders[0]].read_bytes(), **files}


def _listed(program: Path) -> str:
    return run(["ldd", program], why=f"{program.name}: libraries")
