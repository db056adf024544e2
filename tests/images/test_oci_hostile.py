"""Tests archives of container images that are made to do harm: false headers, deep nesting, large numbers,
long processing.
"""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import oci_archives as made
import pytest

from orchestrator.images import ImageError
from orchestrator.images.oci import archive as archives
from orchestrator.images.oci import layers, read, unpacked


def pax(name: str = "f", content: bytes = b"x", **headers: str) -> bytes:
    return made.tar(made.entry(name, content, pax_headers=headers))


def chain(kind: bytes, number: int) -> bytes:
    """Returns a tar of headers, each of which announces a further one."""
    header = tarfile.TarInfo("././@x")
    header.type, header.size = kind, 12
    body = b"12 path=abc\n".ljust(512, b"\0")
    return (header.tobuf(tarfile.USTAR_FORMAT) + body) * number + made.tar(made.entry("f", b"x"))


HOSTILE = {
    "size below zero": pax(size="-512"),
    "size below zero, far": pax(size=str(-(1 << 62))),
    "size without end": pax(size="9" * 30),
    "size of 5,000 digits": pax(size="9" * 5000),
    "sparse file of another size": pax(
        **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "-1"}
    ),
    "sparse map that lies": pax(**{"GNU.sparse.map": "0,1,5,-7", "GNU.sparse.size": "9"}),
    "sparse map of a size without end": pax(**{"GNU.sparse.map": "0,1", "GNU.sparse.size": str(1 << 62)}),
    "time that is no number": pax(mtime="nan"),
    "time without end": pax(mtime="inf"),
    "owner above all numbers": pax(uid=str(1 << 40)),
    "owner below zero": pax(uid="-7"),
    "zero byte in a name": pax(path="a\0b"),
    "zero byte in a link": made.tar(made.entry("l", type=tarfile.SYMTYPE, pax_headers={"linkpath": "a\0b"})),
    "deep path": made.tar(made.entry("a/" * 2000 + "f")),
    "very deep path": made.tar(made.entry("a/" * 200_000 + "f")),
    "long name": made.tar(made.entry("n" * 300)),
    "headers of headers": chain(b"x", 3000),
    "long names of long names": chain(tarfile.GNUTYPE_LONGNAME, 3000),
    "directory in place of the root's name": made.tar(made.entry(".", b"x")),
    "whiteout of a path that goes up": made.tar(made.entry("../.wh.x")),
    "hard link to itself through a parent": made.tar(made.link("a", "a/../a", tarfile.LNKTYPE)),
    "socket": made.tar(made.entry("s", type=b"9")),
    "contiguous file of a wrong size": made.tar(made.entry("s", b"x" * 600, type=tarfile.CONTTYPE))[:1024],
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_it_is_refused_or_harmless(tmp_path: Path, what: str) -> None:
    """Shows that a hostile layer either raises ImageError or is unpacked below the image's directory only."""
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    one = read(made.oci(tmp_path / "image.tar", made.tar(made.directory("a")), HOSTILE[what]))
    try:
        root = unpacked(one, env)
    except ImageError as error:
        assert str(error).startswith(f"image oci:{tmp_path}/image.tar: layer ")
    else:
        assert sum(path.lstat().st_size for path in root.rglob("*") if path.is_file()) < 1 << 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "image.tar"]


def test_a_layer_without_end_is_ended_by_its_cpu_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "MOST_CPU_S", 0.0)
    one = read(made.oci(tmp_path / "image.tar", made.tar(made.directory("a"))))
    with pytest.raises(ImageError, match="take more than 0 s of CPU"):
        unpacked(one, {"XDG_CACHE_HOME": str(tmp_path / "cache")})


def test_an_archive_of_very_many_files_is_refused(tmp_path: Path) -> None:
    members = ((f"blobs/{number}", b"") for number in range(archives.MOST_MEMBERS + 5))
    with pytest.raises(ImageError, match="holds more than 4096 files"):
        read(made.written(tmp_path / "image.tar", members))


def test_a_compressed_archive_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a compressed member of 1 GiB, which takes only a few bytes, is not expanded just to find the
    next one.
    """
    monkeypatch.setattr(archives, "MOST_BYTES", 1 << 20)
    header = tarfile.TarInfo("blob")
    header.size = 1 << 30
    bomb = tmp_path / "bomb.tar.gz"
    bomb.write_bytes(gzip.compress(header.tobuf() + bytes(4096)))
    with pytest.raises(ImageError, match="has more than 0 GiB"):
        read(bomb)


@pytest.mark.parametrize("what", ["size below zero", "headers of headers", "long names of long names"])
def test_the_archive_itself_may_be_as_hostile(tmp_path: Path, what: str) -> None:
    (tmp_path / "image.tar").write_bytes(HOSTILE[what])
    with pytest.raises(ImageError, match=f"^image oci:{tmp_path}/image.tar: "):
        read(tmp_path / "image.tar")


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b"\xff", b"null"])
@pytest.mark.parametrize("name", ["index.json", "manifest.json"])
def test_settings_of_any_json_are_refused(tmp_path: Path, name: str, text: bytes) -> None:
    members = {name: text} | ({"oci-layout": b"{}"} if name == "index.json" else {})
    with pytest.raises(ImageError, match=f"^image oci:{tmp_path}/image.tar: "):
        read(made.written(tmp_path / "image.tar", members.items()))


@pytest.mark.parametrize(
    "config",
    [
        {"Cmd": ["a\0b"]}, {"Env": ["A=\0"]}, {"Env": ["=x"]}, {"Env": [7]}, {"WorkingDir": "../../.."},
        {"WorkingDir": "a\0"}, {"User": "root\0"}, {"Cmd": {"a": 1}}, {"Entrypoint": "sh"}, {"Env": ["A"]},
    ],
)  # fmt: skip
def test_a_configuration_that_no_node_can_use_is_refused_or_plain(
    tmp_path: Path, config: dict[str, object]
) -> None:
    path = made.oci(tmp_path / "image.tar", made.tar(made.directory("a")), config=config)
    try:
        settings = read(path).settings
    except ImageError as error:
        assert str(error).startswith(f"image oci:{path}: ")
        return
    texts = [*settings.argv, *settings.env, *settings.env.values(), settings.workdir, settings.user]
    assert all(isinstance(text, str) and "\0" not in text for text in texts)


def test_one_layer_listed_very_often_counts_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "MOST_ENTRIES", 50)
    layer = made.tar(made.directory("a"))
    with pytest.raises(ImageError, match="the layers have more than 50 files"):
        unpacked(read(made.oci(tmp_path / "i.tar", *[layer] * 60)), {"XDG_CACHE_HOME": str(tmp_path / "c")})
