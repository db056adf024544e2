"""Tests, without a machine, the account that runs QEMU and the files of a lab that QEMU can see."""

from __future__ import annotations

import dataclasses
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_running import vm_missing
from vm_values import image

from orchestrator.lab import mounts
from orchestrator.lab.errors import LabError
from orchestrator.lab.vm import account
from orchestrator.lab.vm.account import GROUPS_FROM, Account
from orchestrator.lab.vm.connection import EMBED, Connection
from orchestrator.lab.vm.domain import EMULATOR
from orchestrator.lab.vm.shown import Shown, rests_on

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another account: needs root"),
    pytest.mark.skipif(account.known() is None, reason="no account for QEMU (images/packages.sh vm)"),
]


@pytest.fixture
def place() -> Iterator[Path]:
    """Yields a directory below /tmp, because the account cannot reach pytest's own directories."""
    with tempfile.TemporaryDirectory(prefix="va") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def lab(place: Path) -> Iterator[tuple[Path, Account]]:
    """Yields a state directory and its account."""
    state = place / "lab"
    state.mkdir()
    yield state, account.of_lab(state)
    for mount in mounts.below(state):
        mounts.unmount(mount)


def test_each_lab_has_a_group_of_its_own_and_always_the_same() -> None:
    one, other = (account.of_lab(Path("/run/vnet", name)) for name in ("one", "other"))
    assert one.user == other.user != 0 and one.group != other.group
    assert one == account.of_lab(Path("/run/vnet/one"))
    assert GROUPS_FROM <= one.group < 1 << 31, "beyond what accounts and containers are given"
    assert one.label == f"+{one.user}:+{one.group}"


def test_a_machine_without_the_account_is_told_what_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "NAMES", ("nobody-of-this-name",))
    with pytest.raises(LabError, match=r"no account nobody-of-this-name.*packages.sh vm makes it"):
        account.of_lab(Path("/run/vnet/x"))


def test_a_directory_that_is_closed_to_it_is_named(lab: tuple[Path, Account]) -> None:
    state, mine = lab
    account.insist_on_a_way(mine, state, "state directory (VNET_STATE_DIR)")
    state.parent.chmod(0o700)
    with pytest.raises(
        LabError, match=f"^{state.parent}: is closed to {mine.name}.*another directory of mine"
    ):
        account.insist_on_a_way(mine, state, "directory of mine")


def test_another_labs_machines_cannot_come_in(lab: tuple[Path, Account]) -> None:
    state, mine = lab
    disk, theirs = state / "disk.qcow2", account.of_lab(state.with_name("other"))
    disk.touch()
    mine.enters(state)
    mine.owns(disk)
    assert mine.reads(disk) and not theirs.reads(disk) and not mine.reads(state)
    assert (disk.stat().st_mode & 0o777, state.stat().st_mode & 0o777) == (0o600, 0o710)


def test_an_image_is_shown_read_only_and_its_files_stay_whose_they_are(
    lab: tuple[Path, Account], place: Path
) -> None:
    state, mine = lab
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    mine.enters(state)

    for name in ("kernel", "initrd"):
        (closed / name).write_text(name)
    given = dataclasses.replace(image(), kernel=closed / "kernel", initrd=closed / "initrd")
    shown = Shown(state, mine)
    seen = shown.image(given)
    assert seen.kernel is not None and seen.initrd is not None and seen.disk is None
    assert mine.reads(seen.kernel) and not mine.reads(closed / "kernel")
    assert seen.kernel.read_text() == "kernel" and shown.image(given) == seen
    with pytest.raises(OSError, match="Read-only"):
        os.chown(seen.kernel, mine.user, mine.group)
    assert (closed / "kernel").stat().st_uid == 0
    assert len(mounts.below(state)) == 2
    shown.close()
    assert mounts.below(state) == [] and (closed / "initrd").exists()


def test_who_has_mounts_of_its_own_sees_it_read_only_too(place: Path) -> None:
    """Shows that a daemon with mounts of its own cannot change the owner of an image that was shown to it
    read only.
    """
    (place / "image").write_text("image")
    (place / "shown").touch()
    for words in (("mount", "-t", "tmpfs", "none"), ("mount", "--make-shared")):
        (place / "shared").mkdir(exist_ok=True)
        subprocess.run([*words, place / "shared"], check=True)
    (place / "shared" / "shown").touch()
    argv = [
        "unshare",
        "--mount",
        "--propagation",
        "slave",
        "sh",
        "-c",
        "echo; read _; chown 65534 $0 && echo got",
    ]
    daemon = subprocess.Popen([*argv, place / "shared/shown"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert daemon.stdout is not None and daemon.stdout.readline() == b"\n"
        mounts.show(place / "image", place / "shared" / "shown")
        assert daemon.communicate(b"\n", 20)[0] == b""
        assert (place / "image").stat().st_uid == 0
    finally:
        daemon.kill()
        daemon.wait()
        for mount in mounts.below(place):
            mounts.unmount(mount)


def test_a_file_that_only_its_owner_reads_is_refused_with_the_command(
    lab: tuple[Path, Account], place: Path
) -> None:
    state, mine = lab
    mine.enters(state)
    disk = place / "own.qcow2"
    disk.write_bytes(b"QFI\xfb" + bytes(100))
    disk.chmod(0o600)

    own = dataclasses.replace(image("disk"), disk=disk)
    with pytest.raises(LabError, match=f"image {disk}: {mine.name}.* may not read it: chmod o\\+r {disk}"):
        Shown(state, mine).image(own)


def test_a_disk_that_rests_on_another_is_refused(lab: tuple[Path, Account], place: Path) -> None:
    state, mine = lab
    disk = place / "thin.qcow2"
    name = b"/srv/secret.qcow2"
    disk.write_bytes(b"QFI\xfb" + struct.pack(">IQI", 3, 200, len(name)) + bytes(180) + name)
    assert rests_on(disk) == name.decode()

    own = dataclasses.replace(image("disk"), disk=disk)
    with pytest.raises(LabError, match=r"rests on another file, /srv/secret\.qcow2.*qemu-img convert"):
        Shown(state, mine).image(own)


def test_qemu_img_writes_what_is_read(place: Path) -> None:
    if subprocess.run(["which", "qemu-img"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no qemu-img")
    base, thin = place / "base.qcow2", place / "thin.qcow2"
    for words in ((str(base), "1M"), ("-F", "qcow2", "-b", str(base), str(thin))):
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *words], check=True)
    assert (rests_on(base), rests_on(thin)) == ("", str(base))


@pytest.mark.skipif(vm_missing() is not None, reason=str(vm_missing()))
def test_what_qemu_can_do_is_asked_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that QEMU's capabilities are cached, because libvirt would otherwise query QEMU for seconds at
    each call.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    connection = Connection(EMBED, place / "lab")
    (kept,) = (place / "cache").rglob("capabilities/*.xml")
    about = kept.stat()
    connection.handle.getDomainCapabilities(EMULATOR, None, None, None, 0)
    connection.close()
    assert kept.stat().st_mtime_ns == about.st_mtime_ns
