"""Tests that images boot until the agent answers, and that all features of a node work in their machines."""

from __future__ import annotations

import base64
import hashlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from images_guest import Guest
from images_needs import built, needs

from orchestrator.images import Image, locate, write_seed
from orchestrator.lab.vm import accel

Boot = Callable[..., Guest]
TO_SPARE_MIB = 12


def offset(guest: Guest) -> tuple[float, float]:
    """Returns (the guest's clock minus ours, its error) in seconds, from the fastest of 30 round trips."""
    best = (0.0, 1e9)
    for _ in range(30):
        before = time.monotonic_ns()
        now = guest.do("clock")["now_ns"]
        after = time.monotonic_ns()
        if after - before < best[1] * 2e9:
            best = ((now - (before + after) / 2) / 1e9, (after - before) / 2e9)
    return best


def a_node_works(guest: Guest) -> None:
    """Asserts that a node works: the interface with the planned name, netem with its tables, a bridge, a
    broker and a capture.
    """
    applied = guest.node()
    assert applied["hostname"] == "alpha"
    (card,) = applied["interfaces"]
    assert (card["name"], card["address"], card["mtu"], card["up"]) == ("lan0", "10.1.0.7", 1400, True)
    assert not any(card["offloads"].values())
    guest.run(
        "/sbin/tc",
        "qdisc",
        "add",
        "dev",
        "lan0",
        "root",
        "netem",
        "delay",
        "10ms",
        "2ms",
        "distribution",
        "normal",
    )
    assert "delay 10ms" in guest.run("/sbin/tc", "qdisc", "show", "dev", "lan0")
    guest.run("/sbin/ip", "link", "add", "br0", "type", "bridge", "group_fwd_mask", "0x4000")
    assert "tcpdump version" in guest.run("sh", "-c", "tcpdump --version 2>&1")


def test_the_builtin_image_is_a_node(builtin: Image, boot: Boot) -> None:
    guest = boot(builtin)
    assert guest.do("hello")["version"]
    a_node_works(guest)

    at_first, error = offset(guest)
    broker = {
        "name": "broker",
        "role": "broker",
        "process": {"argv": ["mosquitto"], "ready": {"tcp_port": 1883}},
    }
    guest.do("start", node="a", software=broker)
    assert guest.do("software")["nodes"]["a"]["broker"]["state"] == "ready"

    log = guest.do("fetch", path="/run/vnet/logs/a.broker.log", offset=0, length=48 * 1024)
    assert b"mosquitto version" in base64.b64decode(log["data"]) and log["size"] > 0
    assert guest.do("fetch", path="/run/vnet/messages.csv", offset=0, length=1)["size"] is None
    assert not guest.ask("fetch", path="/etc/passwd", offset=0, length=1 << 20)["ok"]
    assert guest.guest_agent("guest-ping") == {}

    # The connection may close and open again; the agent stays.
    guest.reconnect()
    assert guest.do("software")["nodes"]["a"]["broker"]["state"] == "ready"

    # The clock's offset is known to 1 ms, and changes by no more than the errors of both estimates.
    later, error_later = offset(guest)
    assert error < 0.001 and error_later < 0.001
    assert abs(later - at_first) < error + error_later + 0.0005

    assert guest.do("quit")["ok"]
    assert guest.process.wait(10) == 0
    assert "vnet-agent ended with status 0" in guest.last_words()


@pytest.mark.parametrize("name", ["builtin", "builtin-router", "builtin-nic", "builtin-tiny"])
def test_an_image_has_memory_to_spare_while_it_unpacks_itself(name: str, boot: Boot) -> None:
    """Shows that an image also boots with TO_SPARE_MIB less memory, although packed and unpacked initramfs
    lie side by side at boot.
    """
    image = built(name)
    assert boot(image, memory_mib=(image.memory_bytes >> 20) - TO_SPARE_MIB).do("hello")["version"]


def test_the_tiny_image_is_a_node(boot: Boot) -> None:
    guest = boot(built("builtin-tiny"))
    guest.do("hello")
    a_node_works(guest)
    assert guest.guest_agent("guest-ping") == {}
    guest.do("quit")
    assert guest.process.wait(10) == 0


def test_the_tiny_image_gives_back_the_memory_that_it_has_freed(boot: Boot) -> None:
    """Shows that the machine gets back memory of the tiny image, which touches all of it while it boots."""
    guest = boot(built("builtin-tiny"))
    guest.do("hello")
    deadline = time.monotonic() + 60
    while guest.resident_share() > 0.8:
        assert time.monotonic() < deadline, f"{guest.resident_share():.0%} of it is still held"
        guest.do("clock")
        time.sleep(0.1)


USER: dict[str, Any] = {
    "users": [
        {"name": "ada", "ssh_authorized_keys": ["ssh-ed25519 AAAA ada@lab"], "shell": "/bin/bash"},
        {"name": "meter", "system": True},
    ],
    "write_files": [{"path": "/etc/motto", "content": "measure twice\n", "permissions": "0640"}],
    "bootcmd": ["echo early >/run/early"],
    "runcmd": [["cp", "/etc/motto", "/etc/motto.copy"]],
}


def the_users_machine_is_there(guest: Guest) -> None:
    """Asserts that cloud-init applied the settings USER without an error, and that the agent runs
    beside it.
    """
    assert guest.do("hello")["version"]
    guest.node()
    assert "status: done" in guest.run("cloud-init", "status", "--wait")
    assert '"errors": []' in guest.run("cat", "/run/cloud-init/result.json")
    assert guest.run("id", "-un", "ada").strip() == "ada"
    assert guest.run("cat", "/home/ada/.ssh/authorized_keys").strip() == "ssh-ed25519 AAAA ada@lab"
    assert guest.run("stat", "-c", "%U %a", "/home/ada/.ssh/authorized_keys").strip() == "ada 600"
    assert int(guest.run("id", "-u", "meter")) < 1000
    assert guest.run("stat", "-c", "%a", "/etc/motto").strip() == "640"
    assert (
        guest.run("cat", "/etc/motto", "/etc/motto.copy", "/run/early") == "measure twice\n" * 2 + "early\n"
    )
    assert guest.run("cat", "/etc/hostname").strip() == "alpha"
    assert guest.run("systemctl", "is-system-running", "--wait").strip() == "running", "no unit has failed"
    assert guest.guest_agent("guest-ping") == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_cloud_init_makes_the_users_machine_and_brings_the_agent(boot: Boot, tmp_path: Path) -> None:
    image, seed = built("debian"), tmp_path / "seed.img"
    write_seed(seed, image, lab="pair", node="a", hostname="alpha", user_data=USER)
    guest = boot(image, seed=seed)
    the_users_machine_is_there(guest)
    guest.do("quit")
    assert guest.process.wait(60) == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_users_own_disk_boots_itself(boot: Boot, tmp_path: Path) -> None:
    """Shows that a copy of `debian`, which counts as a user's disk, boots with its own boot loader and
    kernel, and is never written.
    """
    copy, seed = tmp_path / "own.qcow2", tmp_path / "seed.img"
    shutil.copyfile(str(built("debian").disk), copy)
    image = locate(str(copy))
    assert image.kernel is None
    before = hashlib.sha256(copy.read_bytes()).digest()
    write_seed(seed, image, lab="pair", node="a", hostname="alpha", user_data=USER)
    guest = boot(image, seed=seed)
    the_users_machine_is_there(guest)
    assert "BOOT_IMAGE=/vmlinuz" in guest.run("cat", "/proc/cmdline"), "started by GRUB"
    guest.do("quit")
    assert guest.process.wait(60) == 0
    assert hashlib.sha256(copy.read_bytes()).digest() == before, "a user's disk is never written to"


@pytest.mark.parametrize("name", ["builtin", "builtin-tiny"])
def test_the_trial_of_kvm_boots_an_image_that_works(name: str) -> None:
    """Shows that the test image with which `vnet doctor` tries KVM also boots by emulation. So a failed trial
    means that KVM fails, not the image.
    """
    needs("qemu-system-x86_64")
    assert accel.boots(built(name), accelerator=("-accel", "tcg"))
