"""Tests that under any umask no other user can write or connect to anything of a lab: sockets, pipes, files,
caches, results.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sandboxed import ROOT

from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.project import keep_others_out

MASKS = [0o000, 0o002, 0o077]
LAB = """\
name: {name}
segments: {{lan: {{subnet: 10.77.0.0/24}}}}
nodes:
  a: {{segment: lan, software: {{w: {{command: sleep 1000}}}}}}
  b: {{segment: lan}}
captures: {{all: {{at: node a}}}}
run: {{hold: 200 ms, drain: 100 ms}}
campaign: {{repetitions: 1}}
"""


def open_to_others(top: Path) -> list[str]:
    """Returns the paths, with their modes, that another account may write or connect to; a closed directory
    protects its content.
    """
    found = []
    for path in sorted([top, *top.rglob("*")]):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue  # the process has ended
        above = [one for one in path.parents if one.is_relative_to(top)]
        if stat.S_ISLNK(mode) or any(not one.stat().st_mode & 0o011 for one in above):
            continue
        called = stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)
        if mode & (0o077 if called else 0o022):
            found.append(f"{stat.filemode(mode)} {path.relative_to(top)}")
    return found


class Account:
    """The command line under a umask, with state, results and caches in one directory."""

    def __init__(self, mask: int) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="vu"))
        self.mask = mask
        self.name = f"mask-{mask:03o}-{os.getpid()}"
        self.environment = {**os.environ, "VNET_STATE_DIR": str(self.base / "s"), "PYTHONPATH": str(ROOT)}
        self.environment["XDG_CACHE_HOME"] = str(self.base / "cache")
        (self.base / "lab.yaml").write_text(LAB.format(name=self.name))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "orchestrator.cli.main", *arguments], cwd=self.base, umask=self.mask,
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def vnet(self, *arguments: str) -> str:
        process = self.start(*arguments)
        said, _ = process.communicate(timeout=200)
        assert process.returncode == 0, said
        return said

    def check(self) -> None:
        self.base.chmod(0o755)  # mkdtemp's mode would hide the files that the test examines
        for path in self.base.rglob("*.yaml"):
            path.chmod(0o644)
        assert open_to_others(self.base) == []


def served(server: subprocess.Popen[str]) -> tuple[str, str]:
    """Returns address and token of a live page's server, as it prints them."""
    assert server.stdout is not None
    found = re.search(r"(http\S+)/\?token=(\S+)", server.stdout.readline())
    assert found is not None
    return found[1], found[2]


def until(holds: Callable[[], bool], patience_s: float = 120) -> bool:
    """Waits until the condition holds; returns False if it does not in time."""
    end = time.monotonic() + patience_s
    while not holds() and time.monotonic() < end:
        time.sleep(0.1)
    return holds()


@pytest.fixture(params=MASKS, ids=oct)
def account(request: pytest.FixtureRequest) -> Iterator[Account]:
    made = Account(request.param)
    try:
        yield made
    finally:
        made.start("down", made.name).communicate(timeout=100)
        shutil.rmtree(made.base)


@pytest.mark.parametrize(
    "kernel",
    ["fake", pytest.param("host", marks=pytest.mark.root), pytest.param("uml", marks=pytest.mark.uml)],
)
def test_of_a_lab(account: Account, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kernel == "host" and os.geteuid() != 0:
        pytest.skip("namespaces need root")
    if kernel == "uml":
        if not (found := find_binaries()):
            pytest.skip("no User-Mode Linux kernel (make kernel)")
        account.environment["VNET_UML_KERNEL"] = str(found[0].path)
    account.vnet("up", "lab.yaml", "--kernel", kernel, "--results", "out")
    state = account.base / "s" / account.name
    assert [path for path in state.rglob("*") if path.is_socket()], "a lab has sockets"
    account.check()
    account.vnet("down", account.name)
    account.check()


def test_of_a_campaign_and_its_report(account: Account) -> None:
    account.vnet("campaign", "run", "lab.yaml", "--kernel", "fake", "--out", "results/c")
    assert list((account.base / "results").rglob("manifest.json"))
    account.check()


def test_of_a_server(account: Account) -> None:
    (account.base / "results").mkdir()
    (account.base / "results").chmod(0o755)
    server = account.start("serve", "--port", "0", "--results", "results")
    try:
        page, token = served(server)
        account.check()
        wanted = {"file": "lab.yaml", "kernel": "fake"}
        headers = {
            "Content-Type": "application/json", "Origin": page,
            "Cookie": f"vnet-{page.rpartition(':')[2]}={token}",
        }  # fmt: skip
        request = urllib.request.Request(f"{page}/api/campaigns/begin", json.dumps(wanted).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            begun = account.base / "results" / json.load(answer)["path"]
        assert until(lambda: (begun / "report" / "index.html").exists()), (
            "the campaign that a page began ends"
        )
        account.check()
    finally:
        server.terminate()
        server.communicate(timeout=20)


@pytest.mark.parametrize(("mask", "kept"), [(0o000, 0o022), (0o002, 0o022), (0o022, 0o022), (0o077, 0o077)])
def test_a_stricter_umask_stays(mask: int, kept: int) -> None:
    previous = os.umask(mask)
    try:
        keep_others_out()
        assert os.umask(previous) == kept
    finally:
        os.umask(previous)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
def test_of_a_terminal_in_a_node(account: Account) -> None:
    """Shows the mode of a shell's terminal and of the files that it writes, under the umask of the user who
    started the lab.
    """
    account.vnet("up", "lab.yaml", "--kernel", "host", "--results", "out")
    script = "umask; touch /tmp/f; stat -c '%a' /tmp/f"
    said = account.vnet("exec", account.name, "a", "--", "sh", "-c", script).split()
    assert int(said[0], 8) & 0o022 == 0o022 and int(said[1], 8) & 0o022 == 0, said
    from websockets.sync.client import connect

    server = account.start("serve", "--port", "0", "--results", "out")
    try:
        page, token = served(server)
        cookie = {"Cookie": f"vnet-{page.rpartition(':')[2]}={token}"}
        with connect(
            f"ws://{page.removeprefix('http://')}/ws/lab/{account.name}/shell/a",
            additional_headers=cookie, origin=page,
        ) as shell:  # type: ignore[arg-type]  # fmt: skip
            shell.send(b"echo mask=$(umask) mode=$(stat -c %a $(tty)).; exit\n")
            shown = ""
            while not (found := re.search(r"mask=(\d+) mode=(\d+)\.", shown)):
                got = shell.recv(timeout=30)
                shown += got.decode() if isinstance(got, bytes) else got
        assert int(found[1], 8) & 0o022 == 0o022 and int(found[2], 8) & 0o007 == 0, shown
        account.check()
    finally:
        server.terminate()
        server.communicate(timeout=20)
