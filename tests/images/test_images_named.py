"""Tests that a user's disk becomes a named image with all its contents and a description, and that wrong
files and names are refused and leave nothing.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.images import ImageError, cache, look, named, rests_on, virtual_bytes
from orchestrator.lab.errors import LabError
from orchestrator.lab.vm.files import make_clone
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

pytestmark = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")
CONTENT = b"prepared by hand\n" + b"\0" * 100_000 + b"\7" * 70_000


def qemu(*words: str | Path) -> None:
    subprocess.run(["qemu-img", *map(str, words)], check=True, capture_output=True)


def disk(directory: Path, name: str = "mine.qcow2", content: bytes = CONTENT) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    raw = directory / f"{name}.raw"
    raw.write_bytes(content.ljust(1 << 20, b"\0"))
    qemu("convert", "-f", "raw", "-O", "qcow2", raw, directory / name)
    raw.unlink()
    return directory / name


def content(file: Path, tmp_path: Path) -> bytes:
    qemu("convert", "-O", "raw", file, tmp_path / "read.raw")
    return (tmp_path / "read.raw").read_bytes()


def test_a_file_gets_a_name_and_the_file_may_go(own_cache: Path, tmp_path: Path) -> None:
    file = disk(tmp_path / "in")
    assert main(["images", "add", str(file), "bookworm"]) == 0
    file.unlink()
    image = look("bookworm")
    assert (image.kind, image.kernel, image.made["file"]) == ("disk", None, "mine.qcow2")
    assert image.disk is not None
    assert content(image.disk, tmp_path)[: len(CONTENT)] == CONTENT
    assert (image.disk.stat().st_mode & 0o444) == 0o444  # QEMU's account must be able to read it
    assert image.directory.parent == own_cache


def test_the_disk_of_a_machine_becomes_an_image_that_rests_on_nothing(
    own_cache: Path, tmp_path: Path
) -> None:
    base = named.add(disk(tmp_path / "in"), "bookworm")
    assert base.disk is not None
    clone = tmp_path / "disk.qcow2"
    qemu("create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", base.disk, clone)
    subprocess.run(["qemu-io", "-c", "write -P 9 65536 4096", str(clone)], check=True, capture_output=True)
    shown = tmp_path / "shown.qcow2"  # a path that exists only in the lab, as for QEMU's account
    shown.symlink_to(base.disk)
    qemu("rebase", "-u", "-f", "qcow2", "-F", "qcow2", "-b", shown, clone)
    shown.unlink()
    image = named.save(clone, "prepared", "mylab.server", look("bookworm"))
    assert image.disk is not None and rests_on(image.disk) == ""
    clone.unlink()
    cache.remove(base.directory)
    found = content(image.disk, tmp_path)
    assert found[65536 : 65536 + 4096] == b"\x09" * 4096
    assert found[:17] == CONTENT[:17]
    assert look("prepared").made["saved from"] == "mylab.server"


def test_a_kernel_that_is_started_directly_is_kept(own_cache: Path, tmp_path: Path) -> None:
    file = disk(tmp_path / "in")
    base = named.add(file, "base")
    (base.directory / "kernel").write_bytes(b"kernel")
    cache.write_description(replace(base, kernel=base.directory / "kernel", append="root=/dev/vda1"))
    assert base.disk is not None
    clone = tmp_path / "disk.qcow2"
    qemu("create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", base.disk, clone)
    image = named.save(clone, "prepared", "mylab.server", look("base"))
    assert image.kernel is not None and image.kernel.read_bytes() == b"kernel"
    assert image.append == "root=/dev/vda1"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Mine", "is no name"),
        ("../up", "is no name"),
        ("builtin", "is one that vNET builds"),
        ("lab-kernel", "is one that vNET builds"),
        ("taken", "`vnet images rm taken`"),
    ],
)
def test_names_that_are_taken_or_none_are_refused(
    own_cache: Path, tmp_path: Path, capsys: Any, name: str, said: str
) -> None:
    file = disk(tmp_path / "in")
    named.add(file, "taken")
    before = sorted(path.name for path in own_cache.iterdir())
    assert main(["images", "add", str(file), name]) == 1
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in own_cache.iterdir()) == before


def test_files_that_are_no_whole_disk_are_refused(own_cache: Path, tmp_path: Path, capsys: Any) -> None:
    raw = tmp_path / "raw.img"
    raw.write_bytes(b"\0" * 4096)
    assert main(["images", "add", str(raw), "mine"]) == 1
    assert "not qcow2; qemu-img convert" in capsys.readouterr().err
    file = disk(tmp_path / "in")
    clone = tmp_path / "clone.qcow2"
    qemu("create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", file, clone)
    assert main(["images", "add", str(clone), "mine"]) == 1
    assert "rests on another file" in capsys.readouterr().err
    assert main(["images", "add", str(tmp_path / "absent.qcow2"), "mine"]) == 1
    assert "No such file" in capsys.readouterr().err
    with pytest.raises(ImageError, match="has no disk: built-in images live in memory"):
        named.save(tmp_path / "nosuch", "mine", "lab.node", look(str(file)))
    assert cache.directories() == []


def test_a_clone_has_the_size_that_was_asked_and_is_never_smaller_than_its_image(tmp_path: Path) -> None:
    base = disk(tmp_path / "in")
    make_clone(base, tmp_path / "same.qcow2", 0, "nodes.a")
    make_clone(base, tmp_path / "larger.qcow2", 5_000_001, "nodes.a")
    assert virtual_bytes(tmp_path / "same.qcow2") == 1 << 20
    assert virtual_bytes(tmp_path / "larger.qcow2") == 5_000_192  # whole sectors
    with pytest.raises(LabError, match=r"nodes\.a: disk: 4096 B is less than the image's 1048576 B"):
        make_clone(base, tmp_path / "small.qcow2", 4096, "nodes.a")
    assert not (tmp_path / "small.qcow2").exists()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("kind: vm, disk: 20 GB", "needs an image with a disk"),
        ("disk: 20 GB", "is only for kind vm"),
        ("kind: vm, image: own.qcow2, disk: 0 B", ""),
    ],
)
def test_a_disk_where_none_is_is_refused(keys: str, said: str) -> None:
    text = f"name: x\nsegments: {{lan: {{subnet: 10.9.0.0/24}}}}\nnodes:\n  a: {{segment: lan, {keys}}}\n"
    with pytest.raises(TopologyError) as refused:
        parse("x.yaml", text.encode())
    (problem,) = refused.value.problems
    assert (problem.path, problem.line) == ("nodes.a.disk", 4)
    assert said in problem.rule


def test_the_plan_has_the_disk_that_the_file_asks_for() -> None:
    text = (
        "name: x\nsegments: {lan: {subnet: 10.9.0.0/24}}\n"
        "nodes: {a: {segment: lan, kind: vm, image: own.qcow2, disk: 20 GB}}\n"
    )
    (node,) = make_plan(parse("x.yaml", text.encode()), None, None).nodes
    assert node.vm is not None and node.vm.disk_bytes == 20 * 10**9
