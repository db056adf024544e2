"""Tests the image cache: an image is complete or absent, and errors about missing or stale images have a
remedy.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.images import Image, ImageError, builders, cache, find, initramfs, locate, look
from orchestrator.images.inputs import input_hash
from orchestrator.images.recipe import recipes

OURS = "builtin"


def agent(directory: Path, content: bytes = b"agent") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "vnet-agent"
    file.write_bytes(content)
    file.chmod(0o755)
    return file


def put(name: str, digest: str, **changed: Any) -> Image:
    """Puts an image into the cache without a build."""
    with cache.publish(name, digest) as directory:
        for file in ("kernel", "initrd"):
            (directory / file).write_bytes(b"base")
        fields: dict[str, Any] = {
            "name": name, "kind": "initramfs", "directory": directory, "kernel": directory / "kernel",
            "initrd": directory / "initrd", "append": "quiet", "disk": None, "memory_bytes": 1 << 20,
            "agent": "/vnet/agent", "guest_agent": True, "made": {"inputs": digest},
        }  # fmt: skip
        cache.write_description(Image(**{**fields, **changed}))
    return cache.images()[0]


def test_a_build_that_fails_leaves_nothing_and_the_old_image(own_cache: Path) -> None:
    put("mine", "0" * 16)
    with pytest.raises(RuntimeError), cache.publish("mine", "1" * 16) as directory:
        (directory / "half").write_text("done")
        raise RuntimeError
    assert [path.name for path in own_cache.iterdir() if not path.name.endswith(".lock")] == [
        f"mine-{'0' * 16}"
    ]


def test_what_a_killed_build_has_left_is_cleared_by_the_next(own_cache: Path) -> None:
    left = own_cache / ".mine.part-dead"
    left.mkdir(parents=True)
    (left / "big").write_text("rest")
    put("mine", "0" * 16)
    assert not left.exists()


def test_a_full_disk_is_said_and_leaves_nothing(own_cache: Path) -> None:
    with pytest.raises(ImageError, match="No space left"), cache.publish("mine", "1" * 16):
        raise OSError(28, "No space left on device")
    assert cache.directories() == []


def test_force_replaces_an_image_of_the_same_inputs(own_cache: Path) -> None:
    put("mine", "0" * 16, append="old")
    assert put("mine", "0" * 16, append="new").append == "new"
    assert len(cache.directories("mine")) == 1


def test_an_image_that_is_not_built_is_refused_with_the_command(own_cache: Path) -> None:
    with pytest.raises(ImageError, match=f"image {OURS}: not built; vnet images build {OURS}"):
        locate(OURS)
    with pytest.raises(ImageError, match="image nobodys: not built; write one of builtin, "):
        locate("nobodys")


def test_an_image_of_other_inputs_is_refused(own_cache: Path, tmp_path: Path) -> None:
    put(OURS, "0" * 16)
    with pytest.raises(ImageError, match="its build inputs have changed"):
        locate(OURS, agent(tmp_path))
    put(OURS, input_hash(recipes()[OURS]))
    assert locate(OURS, agent(tmp_path)).made["inputs"] == input_hash(recipes()[OURS])


def test_the_initrd_ends_with_the_present_agent(own_cache: Path, tmp_path: Path) -> None:
    put(OURS, input_hash(recipes()[OURS]))
    first = agent(tmp_path / "a", b"one")
    initrd = locate(OURS, first).initrd
    assert initrd is not None and initrd.read_bytes() == b"base" + initramfs.agent_part(first)
    assert locate(OURS, first).initrd == initrd
    assert locate(OURS, agent(tmp_path / "b", b"two")).initrd != initrd


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "No such file"), (b"raw disk", "not qcow2; qemu-img convert -O qcow2"), (b"QFI\xfb...", "")],
)
def test_a_users_own_disk_must_be_qcow2(tmp_path: Path, content: bytes | None, words: str) -> None:
    disk = tmp_path / "cloud.img"
    if content is not None:
        disk.write_bytes(content)
    if words:
        with pytest.raises(ImageError, match=words):
            locate(str(disk))
    else:
        image = locate(str(disk))
        assert (image.kind, image.disk, image.kernel) == ("disk", disk, None)


def test_a_users_own_disk_rests_on_no_other_file(tmp_path: Path) -> None:
    disk = tmp_path / "layer.qcow2"
    disk.write_bytes(struct.pack(">4sIQI", b"QFI\xfb", 3, 20, 4) + b"base")
    with pytest.raises(ImageError, match=r"rests on another file, base, .*qemu-img convert"):
        look(str(disk))


def test_a_broken_description_and_a_missing_file_are_named(own_cache: Path) -> None:
    image = put("mine", "0" * 16)
    (image.directory / "kernel").unlink()
    with pytest.raises(ImageError, match="kernel: missing from the image"):
        cache.images()
    (image.directory / "image.json").write_text("{}")
    with pytest.raises(ImageError, match="not the description of an image"):
        cache.images()


def test_an_agent_that_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VNET_AGENT", str(tmp_path / "none"))
    with pytest.raises(ImageError, match="the agent is not built; run `make setup`"):
        find.agent_binary()


def test_missing_tools_are_named_with_their_packages(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    monkeypatch.setattr("orchestrator.images.run.PATH", "/nowhere")
    with pytest.raises(ImageError, match="apt-get install kmod lz4 squashfs-tools"):
        builders.build(OURS, force=True, say=print)


def test_ls_and_rm_say_what_is_there(own_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put("mine", "0" * 16)
    put(OURS, "0" * 16)
    assert main(["images", "ls", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {i["name"]: i["state"] for i in listed} == {"mine": "current", OURS: "outdated"}
    assert main(["images", "rm"]) == 2
    assert main(["images", "rm", "--outdated"]) == 0
    assert [path.name for path in cache.directories()] == [f"mine-{'0' * 16}"]
    assert main(["images", "rm", "mine"]) == 0
    assert main(["images", "rm", "mine"]) == 1
    assert "none is built" in capsys.readouterr().err


def test_an_unknown_image_is_not_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["images", "build", "bulitin"]) == 1
    assert "not one that vNET builds; write one of builtin, " in capsys.readouterr().err
