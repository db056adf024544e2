"""Tests that the build script and the orchestrator compute the same hash for the same kernel; no kernel is
built.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.kernel.uml import binaries, recipe

IMAGES = Path(__file__).resolve().parents[2] / "images" / "kernel"


def of_the_script(lock: str) -> str:
    """Returns the hash that the build script's function `recipe` computes."""
    script = (IMAGES / "build.sh").read_text()
    (function,) = re.findall(r"^recipe\(\) \{.*?^\}", script, re.MULTILINE | re.DOTALL)
    command = f'here={IMAGES}; . "$here/{lock}"; {function}\nrecipe {lock}'
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("lock", recipe.LOCKS)
def test_script_and_orchestrator_reckon_alike(lock: str) -> None:
    assert recipe.recipes()[of_the_script(lock)] == recipe.LOCKS[lock]


def test_every_option_has_a_reason() -> None:
    lines = (IMAGES / "lab_defconfig").read_text().splitlines()
    assert lines[0].startswith("## ")
    reasons = [
        i for i, line in enumerate(lines) if line.startswith("## ") and not lines[i - 1].startswith("## ")
    ]
    for start, following in zip(reasons, [*reasons[1:], len(lines)], strict=True):
        options = [line for line in lines[start:following] if not line.startswith("##")]
        assert options and len(options) <= 16, f"{lines[start]}: one reason for {len(options)} options"


def kernel(cache: Path, name: str, recipe_hash: str | None) -> Path:
    """Writes a program that answers --version as a kernel does."""
    path = cache / name / "linux"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 7.3.{len(name)}-{name}\n")
    path.chmod(0o755)
    if recipe_hash:
        path.with_name(recipe.RECORD).write_text(json.dumps({"recipe": recipe_hash}))
    return path


def test_the_kernel_of_this_checkout_comes_before_newer_ones_of_others(tmp_path: Path) -> None:
    now = {made: hash_ for hash_, made in recipe.recipes().items()}
    cache = tmp_path / "vnet" / "kernels"
    first = kernel(cache, "a", now["source"])
    second = kernel(cache, "b", now["fallback"])
    third = kernel(cache, "c", None)
    env = {"XDG_CACHE_HOME": str(tmp_path), "PATH": ""}
    found = [b for b in binaries.find_binaries(env) if b.origin == "built"]
    assert [b.path for b in found] == [first, second, third]
    assert [b.made for b in found] == ["source", "fallback", "older"]
    assert "from its fallback source" in found[1].describe()
    assert "from an older recipe" in found[2].describe()


def test_either_kernel_is_removed_by_its_name(tmp_path: Path) -> None:
    now = {made: hash_ for hash_, made in recipe.recipes().items()}
    made = [
        kernel(tmp_path / "vnet" / "kernels", made, hash_)
        for made, hash_ in {**now, "older": "0123456789abcdef"}.items()
    ]
    left = {path.parent.name for path in made}
    for name, gone in (
        ("lab-kernel-fallback", {"fallback"}),
        ("lab-kernel-faults", {"faults"}),
        ("lab-kernel", {"source", "older"}),
    ):
        argv = [sys.executable, "-m", "orchestrator.cli.main", "images", "rm", name]
        subprocess.run(argv, check=True, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
        left -= gone
        assert {path.name for path in (tmp_path / "vnet" / "kernels").iterdir()} == left


def build(
    tmp_path: Path, *locks: str, by: tuple[str | Path, ...] = (IMAGES / "build.sh",)
) -> subprocess.CompletedProcess[str]:
    """Runs the build script on a machine whose apt has no mirror and whose cache is `tmp_path`."""
    apt = tmp_path / "bin" / "apt-get"
    apt.parent.mkdir(exist_ok=True)
    apt.write_text("#!/bin/sh\nexit 0\n")
    apt.chmod(0o755)
    env = {"PATH": f"{apt.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    return subprocess.run([*by, *locks], env=env, capture_output=True, text=True, check=False, cwd=tmp_path)


needs_compiler = pytest.mark.skipif(
    not all(map(shutil.which, ("gcc-12", "flex", "bison", "bc"))), reason="make kernel installs the compiler"
)


@needs_compiler
def test_what_cannot_be_had_is_said_and_what_is_left(tmp_path: Path) -> None:
    done = build(tmp_path)
    assert done.returncode == 4
    first, _, then = done.stdout.partition("fallback.lock: linux-source-6.12")
    assert "source.lock: linux-source-7.3 7.3" in first and "cannot be had from trixie-backports" in first
    assert "cannot be had from bookworm-security" in then
    assert "apt's sources name no mirror of debian-security" in done.stdout
    assert "in Debian's user-mode-linux, in real time only" in done.stderr


@needs_compiler
def test_the_fallback_can_be_asked_for(tmp_path: Path) -> None:
    vnet = (sys.executable, "-m", "orchestrator.cli.main", "images", "build")
    done = build(tmp_path, "lab-kernel-fallback", by=vnet)
    assert done.returncode == 4
    assert "fallback.lock: linux-source-6.12" in done.stdout and "source.lock:" not in done.stdout
    assert "lab-kernel-fallback: the build failed" in done.stderr


@needs_compiler
def test_a_source_that_is_not_the_pinned_one_is_refused(tmp_path: Path) -> None:
    version = re.findall(r"^version=(.*)", (IMAGES / "source.lock").read_text(), re.MULTILINE)[0]
    forged = tmp_path / "vnet" / "sources" / f"linux-source-7.3_{version}_all.deb"
    forged.parent.mkdir(parents=True)
    forged.write_text("not the package")
    done = build(tmp_path, "source.lock")
    assert done.returncode == 4
    assert "fetching linux-source-7.3" in done.stdout, "a file with another checksum is not used"
