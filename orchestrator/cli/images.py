"""Implements `vnet images`: builds, adds, saves, lists and removes images of virtual machines, and the lab
kernel, which it also exports and imports.
"""

from __future__ import annotations

import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.errors import FAILED, UNABLE, USAGE, CliError
from orchestrator.cli.output import console, json_option, note, print_json, table
from orchestrator.project import LAB_KERNELS, PROJECT

if TYPE_CHECKING:
    from orchestrator.images import Image


@click.group("images")
def images_command() -> None:
    """Build, add, save, list and remove the images of virtual machines, and the lab's own kernel.

    \b
    builtin       Debian's cloud kernel and an initramfs with our software: boots in seconds
    builtin-router  the same with routing daemons
    builtin-nic   the same with Debian's full kernel: for nodes that a physical NIC is passed to
    builtin-tiny  the same with our own small kernel: for many nodes on one machine
    debian        a small Debian disk with systemd and cloud-init
    lab-kernel    the User-Mode Linux kernel of labs without root (make kernel)
    lab-kernel-fallback  its replacement if its source cannot be downloaded: real time only
    lab-kernel-faults  the same as lab-kernel, with wrong clocks and perturbed schedules of nodes
    """


@images_command.command("build")
@click.argument("name")
@click.option("--force", is_flag=True, help="Build even if an image of the same inputs exists.")
def build_command(name: str, force: bool) -> None:
    """Build image NAME into the cache, unless one of the same inputs exists.

    \b
    Example:  vnet images build builtin
    """
    from orchestrator.images import ImageError, builders

    if name in LAB_KERNELS:
        _lab_kernel(name)
        return
    try:
        image = builders.build(name, force=force, say=note)
    except ImageError as error:
        raise CliError(error.text, FAILED) from None
    note(f"{image.name}: {image.directory}")


@images_command.command("add")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("name")
def add_command(file: Path, name: str) -> None:
    """Copy the qcow2 cloud image FILE into the cache, so that topologies write `image: NAME`.

    \b
    Example:  vnet images add debian-12-genericcloud-amd64.qcow2 bookworm
    """
    from orchestrator.images import ImageError, named

    try:
        image = named.add(file, name)
    except ImageError as error:
        raise CliError(error.text, FAILED) from None
    note(f"{image.name}: {image.directory}")


@images_command.command("save")
@click.argument("lab")
@click.argument("node")
@click.argument("name")
def save_command(lab: str, node: str, name: str) -> None:
    """Make image NAME of the disk of NODE, a virtual machine of running LAB that `vnet stop` has switched
    off: what was installed and changed in it stays.

    \b
    Example:  vnet images save mylab server prepared
    """
    from orchestrator.cli.running import asked, connect, find
    from orchestrator.images import ImageError, named
    from orchestrator.lab.vm import storage

    with connect(lab) as control:
        nodes = asked(control, "inspect")["nodes"]
    if node not in nodes:
        raise CliError(f"lab {lab}: {node}: no such node; nodes: {', '.join(nodes)}", USAGE)
    if nodes[node]["kind"] != "vm":
        raise CliError(f"nodes.{node}: is a light node: it has the machine's files and no disk", FAILED)
    if nodes[node]["state"] != "stopped":
        state = nodes[node]["state"]
        raise CliError(f"nodes.{node}: is {state}; `vnet stop {lab} {node}` first, so that its disk is whole")
    try:
        disk = storage.kept(find(lab).state_dir) / node / named.DISK
        image = named.save(disk, name, f"{lab}.{node}", _base(find(lab).state_dir, node))
    except ImageError as error:
        raise CliError(error.text, FAILED) from None
    note(f"{image.name}: {image.directory}")


def _base(state_dir: Path, node: str) -> Image:
    """Returns the image from which a machine of a running lab was made."""
    from contract.rundir import read_plan
    from orchestrator.images import look
    from orchestrator.lab.state import read_lab

    plan = read_plan(Path(read_lab(state_dir)["run_dir"]))
    vm = next(one.vm for one in plan.nodes if one.name == node)
    assert vm is not None  # machines of kind vm have these settings
    return look(vm.image)


def _lab_kernel(name: str) -> None:
    script = PROJECT / "images" / "kernel" / "build.sh"
    if status := subprocess.run([script, *LAB_KERNELS[name]], check=False).returncode:
        raise CliError(
            f"{name}: the build failed for the reason above", UNABLE if status == UNABLE else FAILED
        )


@images_command.command("export")
@click.argument("name", type=click.Choice(["lab-kernel"]))
@click.argument("target", type=click.Path(path_type=Path))
def export_command(name: str, target: Path) -> None:
    """Write the built lab kernel to TARGET, a file or a directory (named by its hash), for another machine.

    \b
    Example:  vnet images export lab-kernel .
    """
    from orchestrator.kernel.protocol import KernelError
    from orchestrator.kernel.uml.carried import export_kernel

    try:
        made = export_kernel(target)
    except KernelError as error:
        raise CliError(str(error), FAILED) from None
    note(f"{name}: {made.path} (sha256 of the kernel {made.sha256}{_comparison(made.known)})")


@images_command.command("import")
@click.argument("source", type=click.Path(path_type=Path))
def import_command(source: Path) -> None:
    """Install the lab kernel of SOURCE, a file from `vnet images export`, instead of building one.

    \b
    Example:  vnet images import lab-kernel-40e99f1c3694b686.tar.gz
    """
    from orchestrator.kernel.protocol import KernelError
    from orchestrator.kernel.uml.carried import import_kernel

    try:
        made = import_kernel(source)
    except KernelError as error:
        raise CliError(str(error), FAILED) from None
    note(f"lab-kernel: {made.path} (sha256 {made.sha256}{_comparison(made.known)})")


def _comparison(known: bool) -> str:
    return (
        ", as in known-builds"
        if known
        else ", not in the list of known builds: check that you trust its source"
    )


@images_command.command("ls")
@json_option
def ls_command(as_json: bool) -> None:
    """List the built images.

    \b
    Example:  vnet images ls
    """
    from orchestrator.images import ImageError, cache

    try:
        found = [_about(image.directory) for image in cache.images()]
    except ImageError as error:
        raise CliError(error.text, FAILED) from None
    if as_json:
        print_json(found)
    elif not found:
        note("no image is built; vnet images build builtin")
    else:
        heads = ("name", "kind", "memory", "size", "built", "state", "directory")
        rows = [
            [
                i["name"],
                i["kind"],
                _mib(i["memory_bytes"]),
                _mib(i["size_bytes"]),
                i["built"],
                i["state"],
                i["directory"],
            ]
            for i in found
        ]
        console().print(table(heads, rows, right=("memory", "size")))


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


def _about(directory: Path) -> dict[str, Any]:
    from orchestrator.images import builders
    from orchestrator.images.model import describe, read_image

    image = read_image(directory)
    files = [path.stat() for path in directory.iterdir()]
    built = datetime.fromtimestamp((directory / "image.json").stat().st_mtime).astimezone()
    return {
        **describe(image),
        "directory": str(directory),
        "size_bytes": sum(stat.st_blocks * 512 for stat in files),
        "built": built.isoformat(" ", "seconds"),
        "state": "current" if builders.current(image) else "outdated",
    }


@images_command.command("rm")
@click.argument("name", required=False)
@click.option("--outdated", is_flag=True, help="Only images whose build inputs have changed.")
def rm_command(name: str | None, outdated: bool) -> None:
    """Remove the images of NAME; with --outdated, only those that a build would replace (all, without NAME).

    \b
    Example:  vnet images rm --outdated
    """
    if name is None and not outdated:
        raise click.UsageError("give a NAME, or --outdated")
    gone = _lab_kernels(name) if name in LAB_KERNELS else _images(name, outdated)
    if not gone:
        what = "outdated" if outdated else "built"
        raise CliError(
            f"image {name or 'of any name'}: none is {what}; `vnet images ls` lists the images", FAILED
        )
    for path in gone:
        note(f"removed {path}")


def _images(name: str | None, outdated: bool) -> list[Path]:
    from orchestrator.images import builders, cache
    from orchestrator.images.model import read_image

    found = cache.directories(name)
    chosen = [path for path in found if not (outdated and builders.current(read_image(path)))]
    for path in chosen:
        cache.remove(path)
    return chosen


def _lab_kernels(name: str) -> list[Path]:
    from orchestrator.kernel.uml.binaries import cache_dir
    from orchestrator.kernel.uml.recipe import made

    own = [one.removesuffix(".lock") for one in LAB_KERNELS[name]] or ["source", "older"]
    built = list(cache_dir().glob("*/linux"))
    gone = [path.parent for path in built if made(path) in own]
    for path in gone:
        shutil.rmtree(path)
    return gone
