"""Tests kill -9 on the command and on a scheduler, over TLS: the campaign resumes from its journal, and no
cell counts twice.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from orchestrator.kernel.uml.binaries import find_binaries

PROJECT = Path(__file__).resolve().parents[2]
WAIT_S = 240  # for each wait: beside other work a start may take minutes
PAIR = PROJECT / "topologies" / "pair.yaml"
PAGES = ("--dashboard-address", "127.0.0.1:0")
CAMPAIGN = f"""\
name: c
campaign: {{topologies: [{PAIR}], parameters: {{hold: 1 s}}, repetitions: 2}}
"""


class Machines:
    """Starts a scheduler and a worker of this machine, over TLS with keys of this test."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self.place, self._stack = place, stack
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tls://127.0.0.1:{free.getsockname()[1]}"
        agent = {} if (PROJECT / "target/release/vnet-agent").exists() else {"VNET_AGENT": "/bin/true"}
        env = {"PYTHONPATH": str(PROJECT), "VNET_STATE_DIR": str(place / "s"), **agent}
        self._env = {**os.environ, **env, **_keys(place)}
        (place / "worker").mkdir()

    def start(self) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
        port = self.address.rpartition(":")[2]
        scheduler = ("--protocol", "tls", "--host", "127.0.0.1", "--port", port, *PAGES)
        worker = (
            self.address,
            "--nthreads",
            "1",
            "--no-nanny",
            *PAGES,
            "--death-timeout",
            str(WAIT_S),
        )
        first = self._begin("distributed.cli.dask_scheduler", *scheduler)
        until(WAIT_S, lambda: _listens(int(port)))
        return first, self._begin("distributed.cli.dask_worker", *worker, cwd=self.place / "worker")

    def trust(self, place: Path) -> None:
        """Uses new keys from now on, of a new certificate authority that is made in `place`."""
        self._env |= _keys(place)

    def command(self) -> subprocess.Popen[str]:
        run = ("campaign", "run", "c.yaml", "--kernel", "fake", "--no-page", "--on", self.address)
        return self._begin("orchestrator.cli.main", *run)

    def _begin(self, module: str, *arguments: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=cwd or self.place,
            env=self._env,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stack.enter_context(process)  # leaving the context waits for the process
        self._stack.callback(process.kill)
        return process


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def _keys(place: Path) -> dict[str, str]:
    """Makes a certificate authority and returns the Dask settings that use it."""
    from distributed import Security

    made = Security.temporary().get_tls_config_for_role("worker")
    env = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}
    for name in ("ca_file", "cert", "key"):
        (place / name).write_text(made[name])
        roles = [""] if name == "ca_file" else ["SCHEDULER__", "WORKER__", "CLIENT__"]
        for role in roles:
            env[f"DASK_DISTRIBUTED__COMM__TLS__{role}{name.upper()}"] = str(place / name)
    return env


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    (tmp_path / "c.yaml").write_text(CAMPAIGN)
    with ExitStack() as stack:
        yield Machines(tmp_path, stack)


def test_the_command_and_the_scheduler_are_killed_and_the_campaign_goes_on(machines: Machines) -> None:
    campaign = machines.place / "results" / "c"
    scheduler, worker = machines.start()
    first = machines.command()
    known = begun(first, campaign)
    first.kill()
    first.communicate()
    second = machines.command()
    begun(second, campaign, known)
    scheduler.kill()
    said = second.communicate(timeout=WAIT_S)[1]
    assert second.returncode == 3, said
    assert "the scheduler is gone; the journal keeps the finished runs" in said and "goes on" in said
    worker.communicate(timeout=WAIT_S)  # the worker ends by itself and ends the lab
    machines.start()
    third = machines.command()
    said = third.communicate(timeout=WAIT_S)[1]
    assert third.returncode == 0, said
    lines = [json.loads(line) for line in (campaign / "cells.jsonl").read_text().splitlines()]
    assert sorted(line["cell"] for line in lines if line["state"] == "complete") == ["pair.r1", "pair.r2"]
    assert {line["state"] for line in lines} <= {"complete", "interrupted"}
    assert not list(campaign.glob("running-*")) and not (campaign / "engine").exists()
    state = machines.place / "s"
    assert not state.exists() or not list(state.iterdir())


def test_a_scheduler_of_another_authority_is_refused(machines: Machines, tmp_path: Path) -> None:
    machines.start()
    other = tmp_path / "other"
    other.mkdir()
    machines.trust(other)
    refused = machines.command()
    said = refused.communicate(timeout=WAIT_S)[1]
    assert refused.returncode == 3, said
    assert "authority did not sign the certificate that is shown there (self-signed certificate)" in said


def begun(process: subprocess.Popen[str], campaign: Path, known: str = "") -> str:
    """Waits until a cell has begun and its worker has noted it on disk; returns the attempt, which must
    differ from `known`.
    """
    found: list[str] = []

    def there() -> bool:
        assert process.poll() is None, process.communicate()[1]
        notes = [json.loads(note.read_text()) for note in (campaign / "engine").glob("*.json")]
        found[:] = [note["attempt"] for note in notes if note["process"] and note["attempt"] != known]
        return bool(found) and any(campaign.glob("running-*"))

    until(WAIT_S, there)
    return found[0]


def until(deadline_s: float, probe: Callable[[], bool]) -> None:
    deadline = time.monotonic() + deadline_s
    while not probe():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.skipif(not find_binaries(), reason="no User-Mode Linux kernel: apt-get install user-mode-linux")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_campaign_is_told_to_end_while_its_workers_go(tmp_path: Path, number: int) -> None:
    """Shows that a campaign ends as interrupted on request and leaves no lab, even if all its workers are
    ended just before and new ones start in their place. The shell ignores Ctrl-C, as for a script in the
    background.
    """
    (tmp_path / "c.yaml").write_text(CAMPAIGN.replace("hold: 1 s", "hold: 1 h"))
    agent = {} if (PROJECT / "target/release/vnet-agent").exists() else {"VNET_AGENT": "/bin/true"}
    run = "campaign run c.yaml --kernel uml --no-page --on local:2"
    argv = ["sh", "-c", f'trap "" INT; exec {sys.executable} -m orchestrator.cli.main {run}']
    env = {**os.environ, "PYTHONPATH": str(PROJECT), "VNET_STATE_DIR": str(tmp_path / "s"), **agent}
    with subprocess.Popen(argv, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            begun(process, tmp_path / "results" / "c")
            for pid in reversed(_descendants(process.pid)):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            process.terminate()
            said = process.communicate(timeout=WAIT_S)[1]
        finally:
            process.kill()
    assert process.returncode == 130, said
    lines = [json.loads(line) for line in (tmp_path / "results/c/cells.jsonl").read_text().splitlines()]
    assert {line["state"] for line in lines} == {"interrupted"}
    assert not (tmp_path / "s").exists() or not list((tmp_path / "s").iterdir())


def _descendants(pid: int) -> list[int]:
    """Returns the pids of all descendants of the process, parents before children."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *_descendants(child)]
    return found
