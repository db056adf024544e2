"""Builds the image `debian`: a small Debian with systemd and cloud-init on a disk, without loop devices."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from orchestrator.images import bootloader, cache
from orchestrator.images.errors import ImageError
from orchestrator.images.kernel import release_of, vmlinux
from orchestrator.images.model import Image, read_image
from orchestrator.images.packages import one_line_sources, sources
from orchestrator.images.recipe import GUEST, Disk, digest
from orchestrator.images.run import require, run

TOOLS = {
    "debootstrap": "debootstrap",
    "mke2fs": "e2fsprogs",
    "qemu-img": "qemu-utils",
    "lz4": "lz4",
    "grub-mkimage": "grub-pc-bin",
    "unshare": "util-linux",
}
SETTINGS = GUEST / "debian"
FORM = 2  # part of the hash; it must be raised with every change to the steps of `build`
# Services that would start work during a measurement.
MASKED = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
)
# Directories that no node reads; they would be a third of the image's size.
WASTE = (
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
)


def input_hash(disk: Disk) -> str:
    settings = sorted(path for path in SETTINGS.rglob("*") if path.is_file())
    return digest(settings, repr(disk), repr(MASKED), repr(WASTE), str(FORM))


def build(disk: Disk, say: Callable[[str], None]) -> Image:
    """Builds the image into the cache and returns it, which takes minutes.

    Raises ImageError, for example if not run by root.
    """
    require(TOOLS)
    if os.geteuid() != 0:
        raise ImageError(f"image {disk.name}: debootstrap makes files of many owners; build it as root")
    name = input_hash(disk)
    with cache.publish(disk.name, name) as directory, tempfile.TemporaryDirectory(dir=directory) as scratch:
        root = Path(scratch) / "root"
        suite, mirror = sources()
        say(f"debootstrap: {suite} from {mirror} (about two minutes in all)")
        debootstrap: list[str | Path] = ["debootstrap", "--variant=minbase", suite, root, mirror]
        run(debootstrap, why=f"image {disk.name}")
        shutil.copytree(SETTINGS, root, dirs_exist_ok=True)
        say(f"{len(disk.packages)} packages and what they need")
        _install(root, disk)
        say("kernel and disk")
        release = release_of(root)
        vmlinux(root / "boot" / f"vmlinuz-{release}", directory / "kernel")
        shutil.copyfile(root / "boot" / f"initrd.img-{release}", directory / "initrd")
        packages = _packages(root)
        _slim(root)
        _disk(root, disk, Path(scratch), directory / "disk.qcow2")
        cache.write_description(_image(disk, directory, {"inputs": name, "suite": suite, **packages}))
    return read_image(cache.cache_dir() / f"{disk.name}-{name}")


def _install(root: Path, disk: Disk) -> None:
    """Installs the recipe's packages with apt in the new system, since debootstrap does not handle virtual
    packages; starts no service. Then locks root's password, masks units, empties the machine ID, and sets the
    host name `localhost`.
    """
    (root / "etc" / "apt" / "sources.list").write_text(one_line_sources())
    policy = root / "usr" / "sbin" / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    _inside(root, "apt-get", "-q", "update")
    options = ["-o", "Dpkg::Options::=--force-confold", "-o", "Dpkg::Options::=--force-unsafe-io"]
    _inside(root, "apt-get", "-q", "-y", "--no-install-recommends", *options, "install", *disk.packages)
    _inside(root, "passwd", "-l", "root")
    policy.unlink()
    for unit in (*MASKED, *disk.masked):
        (root / "etc" / "systemd" / "system" / unit).symlink_to("/dev/null")
    (root / "etc" / "machine-id").write_text("")  # each clone makes its own at its first boot
    (root / "etc" / "hostname").write_text("localhost\n")


def _inside(root: Path, *argv: str) -> None:
    """Runs a command in the new system, with a /proc that is mounted only for that command."""
    script = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    command: list[str | Path] = ["unshare", "--mount", "sh", "-c", script, root, *argv]
    run(command, why=f"image: {argv[0]}", env={"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"})


def _packages(root: Path) -> dict[str, str]:
    query = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Package} ${Version}\n"]
    lines = run(query, why="packages of the image").splitlines()
    return dict(line.split(" ", 1) for line in lines)


def _slim(root: Path) -> None:
    for waste in WASTE:
        for path in (root / waste).glob("*"):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _disk(root: Path, disk: Disk, scratch: Path, target: Path) -> None:
    """Makes the bootable qcow2 disk `target` from the root directory, with GRUB and one ext4 partition;
    mke2fs fills the file system, so no loop device or mount is needed.
    """
    raw, start = scratch / "disk.raw", bootloader.FIRST_MIB << 20
    bootloader.write_menu(root, disk.append)
    form = f"-q -F -t ext4 -L vnet-root -E offset={start}".split()
    run(["mke2fs", *form, "-d", root, raw, f"{disk.disk_mib}M"], why="the image's file system")
    bootloader.make_bootable(raw, disk.disk_mib, scratch)
    run(["qemu-img", "convert", "-q", "-c", "-O", "qcow2", raw, target], why="the image's disk")


def _image(disk: Disk, directory: Path, made: dict[str, str]) -> Image:
    return Image(
        name=disk.name,
        kind="disk",
        directory=directory,
        kernel=directory / "kernel",
        initrd=directory / "initrd",
        append=disk.append,
        disk=directory / "disk.qcow2",
        memory_bytes=disk.memory_mib * 2**20,
        agent="/opt/vnet/vnet-agent",
        guest_agent=True,
        made=made,
    )
