"""Tests four labs of the same name that two accounts start at once: each account gets one, its second is
refused, and no account ends another's lab.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAIR = ROOT / "topologies/pair.yaml"
OTHER = "nobody"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")


class Account:
    """The command line as one account, in its own directory `place`."""

    def __init__(self, place: Path, name: str) -> None:
        self.place = place
        entry = pwd.getpwnam(name)
        place.mkdir()
        os.chown(place, entry.pw_uid, entry.pw_gid)
        self.reach = ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
        # VNET_STATE_DIR is unset, so each account gets its default state directory, as users do.
        self.environment = {k: v for k, v in os.environ.items() if k != "VNET_STATE_DIR"}
        self.environment |= {"HOME": str(place), "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
        self.environment["XDG_RUNTIME_DIR"] = str(place)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.reach, sys.executable, "-m", "orchestrator.cli.main", *arguments], cwd=self.place,
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def vnet(self, *arguments: str) -> tuple[int, str]:
        process = self.start(*arguments)
        said, _ = process.communicate(timeout=90)
        return process.returncode, said

    def labs(self, name: str) -> list[str]:
        _, said = self.vnet("ls", "--json")
        return [lab["state"] for lab in json.loads(said or "[]") if lab["lab"] == name]


@pytest.fixture
def accounts() -> Iterator[tuple[Account, Account]]:
    place = Path(tempfile.mkdtemp(prefix="vu", dir="/var/tmp"))
    place.chmod(0o755)
    mine, other = Account(place / "mine", "root"), Account(place / "other", OTHER)
    if other.vnet("--version")[0] != 0:
        shutil.rmtree(place)
        pytest.skip("this checkout or its interpreter cannot be read by another user")
    try:
        yield mine, other
    finally:
        shutil.rmtree(place)


def test_four_labs_of_one_name(accounts: tuple[Account, Account]) -> None:
    name = f"both{os.getpid()}"
    words = ("up", str(PAIR), "--kernel", "fake", "--lab", name, "--results", "out")
    try:
        began = [(account, account.start(*words)) for account in (*accounts, *accounts)]
        ended = [
            (account, process.communicate(timeout=90)[0], process.returncode) for account, process in began
        ]
        for account in accounts:
            outcomes = sorted((status, said) for whose, said, status in ended if whose is account)
            assert [status for status, _ in outcomes] == [0, 1], ended
            assert "runs already" in outcomes[1][1] or "the name is in use" in outcomes[1][1]
            assert account.labs(name) == ["up"]
        mine, other = accounts
        assert other.vnet("down", name)[0] == 0
        assert (mine.labs(name), other.labs(name)) == (["up"], [])
        status, said = other.vnet("down", name)
        assert status == 1 and "no such lab" in said
        assert mine.labs(name) == ["up"]
    finally:
        for account in accounts:
            account.vnet("down", name)
