"""Provides fixtures: a command line with the labs' state in a temporary directory, a simulated lab, and
clients of the live page.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import browser
from command_line import CommandLine
from page_lab import StandIn, planned, served
from starlette.testclient import TestClient


@pytest.fixture
def vnet(tmp_path: Path) -> Iterator[CommandLine]:
    """Yields a command line; takes its labs down afterwards and asserts that none is left."""
    line = CommandLine(tmp_path, Path(f"{tmp_path}/s"))
    yield line
    for lab in line.labs():
        line("down", lab)
    assert not line.labs()


@pytest.fixture(scope="session")
def outage() -> dict[str, Any]:
    return planned("mqtt-outage")


@pytest.fixture
def lab(tmp_path: Path, outage: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Yields a simulated running lab `shown`, which the live page finds and which records the page's
    requests.
    """
    monkeypatch.setenv("VNET_STATE_DIR", str(tmp_path / "s"))
    run = tmp_path / "results" / "shown" / "1"
    (run / "raw" / "logs").mkdir(parents=True)
    (run / "plan.json").write_text(json.dumps(outage))
    (run / "manifest.json").write_text(json.dumps({"lab": "shown", "state": "running", "t0_ns": 10**9}))
    stand_in = StandIn(tmp_path / "s" / "shown", run)
    yield stand_in
    stand_in.shutdown()
    stand_in.server_close()


@pytest.fixture
def client(lab: StandIn) -> TestClient:
    """Returns a client of a live page, with its token."""
    return served(lab.run_dir.parents[1])[0]


@pytest.fixture
def chromium() -> Iterator[Callable[..., Any]]:
    """Yields a function that opens pages in a real browser."""
    with browser() as page:
        yield page


@pytest.fixture
def address(vnet: CommandLine) -> Iterator[str]:
    """Yields the address of a live page, with its token, of the command line's labs and results."""
    (vnet.cwd / "results").mkdir(exist_ok=True)
    process = vnet.start("serve", "--port", "0")
    assert process.stderr is not None
    yield process.stderr.readline().split()[-1]
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
