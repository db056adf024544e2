"""Follows the tutorial and guides as a reader does: writes their files, types their commands, compares the
answers.

A page is typed if it has blocks of ```console: everything that it prints there, in an empty directory.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/virtual"))
from virtual_place import kernel_missing  # noqa: E402

STEPS = sorted((ROOT / "docs/tutorial").glob("[1-9]-*.md"))
GUIDES = [page for page in sorted((ROOT / "docs/how-to").glob("*.md")) if "```console\n" in page.read_text()]
LONG = {"regression-in-ci"}  # minutes
# Programs that a page needs beside vNET: `make test` installs them where it may (images/packages.sh).
NEEDED = {
    "nginx-postgresql-redis": ("nginx", "wrk", "redis-server", "/usr/lib/postgresql/15/bin/postgres"),
    "go-rust-node-java-python": ("go", "rustc", "node", "javac", "jar"),
    "grpc": ("/usr/share/doc/python3-grpcio",),
    "wireguard": ("wireguard-go", "wg", "iperf3"),
}
AIOQUIC = "aioquic==1.2.0"  # what the page `quic` installs from PyPI
PAGES = [
    pytest.param(page, marks=pytest.mark.sweep if page.stem in LONG else (), id=page.stem)
    for page in [*STEPS, *GUIDES]
]
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yields a reader's environment, with vnet on the path; asserts at the end of a step that no
    lab is left.
    """
    state = tmp_path.parent / f"{tmp_path.name}-state"
    own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "VNET_STATE_DIR": str(state)}
    yield os.environ | own | {"COLUMNS": "120", "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    left = list(state.iterdir()) if state.exists() else []
    assert left == [], "write `vnet down` at the end of the step"


def typed(command: str, wanted: str, place: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, f"$ {command}: status {done.returncode}\n{done.stdout}"
    said = "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"
    same = doctest.OutputChecker().check_output(wanted, said, LIKE)
    assert same or not wanted, f"$ {command}\nthe page:\n{wanted}\nsaid:\n{said}"


def _is_there(name: str) -> bool:
    return Path(name).exists() if name.startswith("/") else shutil.which(name) is not None


def _fetched(package: str, place: Path) -> bool:
    """Returns whether the package's wheel could be fetched, by the Python that the page uses."""
    fetch = ("-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(place), package)
    return subprocess.run([sys.executable, *fetch], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, reader: dict[str, str]) -> None:
    if why := kernel_missing():
        pytest.skip(why)
    if missing := [name for name in NEEDED.get(page.stem, ()) if not _is_there(name)]:
        pytest.skip(f"{missing[0]} is not installed; images/packages.sh services")
    if page.stem == "quic" and not _fetched(AIOQUIC, tmp_path / "wheels"):
        pytest.skip("PyPI is not reached")
    for language, title, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if title:
            (tmp_path / title).write_text(text)
        elif language == "console":
            for command, wanted in COMMAND.findall(text):
                typed(command, wanted, tmp_path, reader)


def test_there_are_five_steps_each_named_by_the_first_page() -> None:
    first = (ROOT / "docs/tutorial/README.md").read_text(encoding="utf-8")
    assert len(STEPS) == 5 and all(f"({step.name})" in first for step in STEPS)
