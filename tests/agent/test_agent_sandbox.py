"""Tests that a node in the sandbox gets writable file systems of its own just before its first program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_launcher import Launcher

pytestmark = pytest.mark.root
OWN = ("/tmp", "/run", "/var/tmp", "/dev/shm")
DISK_BYTES = 8 << 20


def contained(launcher: Launcher, name: str, **mounts: list[str]) -> int:
    sandbox = {"hidden": [], "logs": str(launcher.logs), "disk_bytes": DISK_BYTES}
    node = {
        "name": name, "netns": launcher.netns(name), "hostname": name, "cgroup_procs": [], "ipv6": False,
        "mounts": mounts,
    }  # fmt: skip
    pids: dict[str, int] = launcher.do("create", core=None, nodes=[node], sandbox=sandbox)["pids"]
    return pids[name]


def mounted(pid: int) -> list[list[str]]:
    """Returns [mount point, options, file system, the file system's options] of all mounts of a process."""
    lines = [line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
    return [[line[4], line[5], *line[line.index("-") + 1 :: 2]] for line in lines]


def shell(launcher: Launcher, node: str, command: str) -> dict[str, Any]:
    return launcher.do("exec", node=node, argv=["sh", "-c", command], env={}, tty=None)


def test_nothing_is_writable_before_the_first_program(launcher: Launcher, tmp_path: Path) -> None:
    secret = Path("/tmp") / f"{launcher.lab}-secret"
    secret.write_text("the machine's")
    try:
        pid = contained(launcher, "a")
        places = mounted(pid)
        assert not [place for place, options, _, _ in places if "rw" in options.split(",") and place in OWN]
        assert "devpts" not in {kind for _, _, kind, _ in places}
        root = Path(f"/proc/{pid}/root")
        for own in OWN:
            assert {p.name for p in (root / own[1:]).iterdir()} <= {"nothing", "no-file"}, own
            with pytest.raises(OSError, match="Read-only file system"):
                (root / own[1:] / "x").touch()
    finally:
        secret.unlink()


def test_the_first_program_finds_the_nodes_own_file_systems(launcher: Launcher, tmp_path: Path) -> None:
    shown = tmp_path / "shown"  # below /tmp, over which each node mounts a directory of its own
    shown.write_text("as it is")
    pid = contained(launcher, "a", write=[str(shown)])
    tried = f'touch {" ".join(f"{own}/x" for own in OWN)} "$HOME/x" && cat {shown} && test -c /dev/pts/ptmx'
    assert shell(launcher, "a", tried)["status"] == 0, launcher.events
    assert shell(launcher, "a", f"test -f /tmp/x && ls /sys/class/net && echo new > {shown}")["status"] == 0
    assert shown.read_text() == "new\n" and not Path("/run/x").exists()
    bound = [options for place, _, kind, options in mounted(pid) if (place, kind) == ("/run", "tmpfs")]
    assert f"size={DISK_BYTES >> 10}k" in bound[-1]
    assert len([p for p, *_ in mounted(pid) if p == "/dev/pts"]) == 1, "mounted once, for two programs"


def test_a_node_sees_no_files_of_another(launcher: Launcher) -> None:
    for name in ("a", "b"):
        contained(launcher, name)
    assert shell(launcher, "a", "echo a > /tmp/of-a && mkdir /run/of-a")["status"] == 0
    assert shell(launcher, "b", "test ! -e /tmp/of-a && test ! -e /run/of-a")["status"] == 0


def test_the_launcher_returns_to_its_own_mounts(launcher: Launcher, tmp_path: Path) -> None:
    pid, own = contained(launcher, "a"), Path(f"/proc/{launcher.process.pid}")
    before = (own / "mountinfo").read_text(), (own / "root").readlink(), (own / "cwd").readlink()
    assert shell(launcher, "a", "true")["status"] == 0
    assert ((own / "mountinfo").read_text(), (own / "root").readlink(), (own / "cwd").readlink()) == before
    assert (own / "ns/mnt").readlink() != Path(f"/proc/{pid}/ns/mnt").readlink()
    record = tmp_path / "records.csv"
    launcher.do("messages", path=str(record))
    assert record.exists(), json.dumps(launcher.events)


def test_a_copied_directory_is_the_nodes_own_and_shows_no_secret(launcher: Launcher) -> None:
    name = f"{launcher.lab}-made"
    pid = contained(launcher, "a", copy=["/etc", "/var"])
    contained(launcher, "b", copy=["/etc", "/var"])
    written = f"touch /etc/{name} /var/{name} /var/tmp/x && rm /etc/passwd && test ! -e /etc/passwd"
    assert shell(launcher, "a", written)["status"] == 0, launcher.events
    assert shell(launcher, "a", f"test -f /etc/{name} && test -d /etc/ssl && test -d /var/lib")["status"] == 0
    assert not Path(f"/etc/{name}").exists() and Path("/etc/passwd").exists()
    assert shell(launcher, "b", f"test ! -e /etc/{name} && test -s /etc/passwd")["status"] == 0
    assert Path("/etc/shadow").stat().st_mode & 0o004 == 0, "a secret of the machine"
    assert shell(launcher, "a", "test ! -s /etc/shadow")["status"] == 0
    kept = Path("/var/log") / name
    kept.mkdir(mode=0o700)
    (kept / "log").write_text("secret of the machine")
    try:
        contained(launcher, "c", copy=["/etc", "/var/log"])
        assert shell(launcher, "c", f'test -z "$(ls -A {kept})" && echo own >{kept}/log')["status"] == 0
        assert shell(launcher, "c", "echo own >>/etc/shadow && grep own /etc/shadow")["status"] == 0
        assert (kept / "log").read_text() == "secret of the machine"
        assert "own" not in Path("/etc/shadow").read_text()
    finally:
        (kept / "log").unlink()
        kept.rmdir()
    for refused in ("rm /etc/shadow", "umount /etc/shadow", "umount /etc", "umount /tmp"):
        assert shell(launcher, "a", refused)["status"] != 0, refused
    kinds = {place: kind for place, _, kind, _ in mounted(pid)}
    assert kinds["/etc"] == kinds["/var"] == "overlay"
