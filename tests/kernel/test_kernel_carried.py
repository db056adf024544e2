"""Tests the lab kernel as a file: its export from one machine's cache, its import into another's, and refused
files.
"""

import contextlib
import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.cli.main import main

KERNEL = b"#!/bin/sh\necho 7.99.0-lab\n"
NAME = "00112233445566ab"
RECORD = {"recipe": "none", "sha256": hashlib.sha256(KERNEL).hexdigest()}


@dataclass
class Done:
    exit_code: int
    output: str


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("VNET_UML_KERNEL", raising=False)
    return tmp_path / "cache" / "vnet" / "kernels"


def images(*words: object) -> Done:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = main(["images", *map(str, words)])
    return Done(status, said.getvalue().replace("\n", ""))


def built(cache: Path, content: bytes = KERNEL) -> Path:
    place = cache / NAME
    place.mkdir(parents=True)
    (place / "linux").write_bytes(content)
    (place / "linux").chmod(0o755)
    (place / "kernel.json").write_text(json.dumps(RECORD))
    return place / "linux"


def packed(path: Path, **members: bytes) -> Path:
    """Writes a file like an exported kernel with the test's own members; the argument `linux__twice` adds a
    second member `linux`.
    """
    with tarfile.open(path, "w:gz") as tar:
        for member, data in members.items():
            about = tarfile.TarInfo(f"{NAME}/{member.partition('__')[0].replace('record', 'kernel.json')}")
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    return path


def test_a_kernel_goes_from_one_cache_into_another(tmp_path: Path, cache: Path) -> None:
    built(cache)
    done = images("export", "lab-kernel", tmp_path)
    assert done.exit_code == 0, done.output
    file = tmp_path / f"lab-kernel-{NAME}.tar.gz"
    assert str(file) in done.output and "check that you trust its source" in done.output
    cache.rename(tmp_path / "elsewhere")
    done = images("import", file)
    assert done.exit_code == 0, done.output
    assert (cache / NAME / "linux").read_bytes() == KERNEL
    assert json.loads((cache / NAME / "kernel.json").read_text()) == RECORD
    assert sorted(path.name for path in (cache / NAME).iterdir()) == ["kernel.json", "linux"]


def test_an_export_overwrites_nothing_and_needs_a_kernel(tmp_path: Path, cache: Path) -> None:
    done = images("export", "lab-kernel", tmp_path)
    assert done.exit_code == 1 and "none is built here; vnet images build lab-kernel" in done.output
    built(cache)
    (tmp_path / "mine").write_text("mine")
    done = images("export", "lab-kernel", tmp_path / "mine")
    assert done.exit_code == 1 and "is there already" in done.output
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_kernel_that_is_not_what_its_record_says_is_not_exported(tmp_path: Path, cache: Path) -> None:
    built(cache, KERNEL + b"# changed\n")
    done = images("export", "lab-kernel", tmp_path)
    assert done.exit_code == 1 and "is not what its kernel.json says" in done.output


TOLD = json.dumps(RECORD).encode()
OTHER = b"#!/bin/sh\necho no kernel\n"
OTHERS = json.dumps({"sha256": hashlib.sha256(OTHER).hexdigest()}).encode()
BAD: dict[str, tuple[dict[str, bytes], str]] = {
    "a changed kernel": ({"record": TOLD, "linux": KERNEL + b"x"}, "was changed on its way"),
    "another file": ({"record": TOLD, "linux": KERNEL, "passwd": b""}, "is neither HASH/linux nor"),
    "a path": ({"record": TOLD, "../linux": KERNEL}, "is neither HASH/linux nor"),
    "no record": ({"linux": KERNEL}, "one kernel and its record are not in it"),
    "no mapping": ({"record": b"[]", "linux": KERNEL}, "is not a mapping of texts"),
    "no json": ({"record": b"{", "linux": KERNEL}, "no file of vnet images export"),
    "twice": ({"record": TOLD, "linux": KERNEL, "linux__twice": KERNEL}, "or is there twice"),
    "no kernel": ({"record": OTHERS, "linux": OTHER}, "does not run here"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_kernel_is_refused_and_nothing_is_changed(tmp_path: Path, cache: Path, what: str) -> None:
    members, rule = BAD[what]
    done = images("import", packed(tmp_path / "file", **members))
    assert done.exit_code == 1 and rule in done.output, done.output
    assert not [path for path in cache.rglob("*") if path.is_file() or path.name == NAME]


def test_a_kernel_of_a_known_build_must_be_that(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "known-builds").write_text(f"{NAME} {'0' * 64} somewhere\n")
    monkeypatch.setattr("orchestrator.kernel.uml.carried.DIRECTORY", tmp_path)
    done = images("import", packed(tmp_path / "file", record=TOLD, linux=KERNEL))
    assert done.exit_code == 1 and f"is not that of known-builds ({'0' * 64})" in done.output
    assert not cache.exists() or not list(cache.iterdir())


def test_a_file_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    for file in (tmp_path / "text", tmp_path, tmp_path / "absent"):
        done = images("import", file)
        assert done.exit_code == 1 and "no file of vnet images export" in done.output
