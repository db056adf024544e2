"""Tests that the seed of a node with a disk has the node's identity and settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_images_archives import read_iso

from orchestrator.images import Image, ImageError
from orchestrator.images.seed import merged, network_config, write_seed

DISK = Image(
    "own", "disk", Path("/"), None, None, "", Path("/own.qcow2"), 1 << 29, "/opt/vnet/vnet-agent", False
)


def test_the_seed_says_who_the_node_is_and_brings_the_agent_with_its_libraries(tmp_path: Path) -> None:
    seed = tmp_path / "seed.img"
    user = {
        "users": [{"name": "ada"}],
        "packages": ["jq"],
        "write_files": [{"path": "/etc/x", "content": "y"}],
    }
    write_seed(seed, DISK, lab="pair", node="a", hostname="alpha", user_data=user, agent=Path("/bin/cat"))
    files = read_iso(seed.read_bytes())
    assert json.loads(files["meta-data"]) == {"instance-id": "pair.a", "local-hostname": "alpha"}
    told = files["user-data"].decode()
    assert told.startswith("#cloud-config\n")
    config = json.loads(told.split("\n", 1)[1])
    assert {key: config[key] for key in user} == user
    assert "start-agent.sh" in config["bootcmd"][0][2]
    assert json.loads(files["network-config"]) == {"config": "disabled"}
    assert files["vnet-agent"] == Path("/bin/cat").read_bytes()
    assert files["ld.so"][:4] == files["libc.so.6"][:4] == b"\x7fELF"


def test_the_users_own_bootcmd_comes_after_ours() -> None:
    assert merged({"bootcmd": ["echo hello"]})["bootcmd"][1:] == ["echo hello"]
    with pytest.raises(ImageError, match="write a list of commands"):
        merged({"bootcmd": "echo hello"})


def test_interfaces_are_set_up_by_their_mac() -> None:
    told = network_config([{"mac": "02:00:00:00:00:07", "address": "10.1.0.7", "prefix": 16}])
    assert told["ethernets"]["eth0"] == {
        "match": {"macaddress": "02:00:00:00:00:07"},
        "set-name": "eth0",
        "addresses": ["10.1.0.7/16"],
    }
