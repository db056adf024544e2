"""Tests that captures left on another machine are fetched on request, completely or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.campaign.engines import captures, worker
from orchestrator.campaign.engines.examine import examine
from orchestrator.campaign.engines.task import Facts
from orchestrator.cli.main import main

WHOLE = bytes(range(256)) * 20
Command = Callable[..., int]


class Client:
    """Imitates a Dask client with one worker on `lab-2`; `there` is false once the worker is gone."""

    there = True

    def nthreads(self) -> dict[str, int]:
        return {"tls://lab-2:1": 1}

    def run(
        self, function: Callable[..., Any], *arguments: Any, workers: list[str], **_: str
    ) -> dict[str, Any]:
        if function is examine:
            return {workers[0]: Facts("lab-2", "boot", {"code": "1"}, {}, 2, 8 << 30, (), ())}
        if function is worker.admit or not self.there:
            return {}
        return {workers[0]: function(*arguments)}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    made = Client()

    @contextmanager
    def opened(_: object) -> Iterator[Client]:
        yield made

    monkeypatch.setattr("orchestrator.campaign.engines.opening.opened", opened)
    monkeypatch.setattr("orchestrator.campaign.engines.workers.versions", lambda: {"code": "1"})
    monkeypatch.setattr(captures, "PIECE_BYTES", 1000)
    return made


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Writes a campaign of three cells: one run on lab-2, one on lab-3 and one on this machine."""
    lines = []
    for name, machine in (("a.r1", "lab-2"), ("b.r1", "lab-3"), ("c.r1", "")):
        kept = tmp_path / "kept" / name
        (kept / "pcap").mkdir(parents=True)
        (kept / "pcap" / "all.pcap").write_bytes(WHOLE)
        (tmp_path / "campaign" / "runs" / name).mkdir(parents=True)
        line = {"cell": name, "run_dir": f"runs/{name}", "state": "complete"}
        lines.append(line | ({"machine": machine, "there": str(kept)} if machine else {}))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "campaign" / "cells.jsonl").write_text(text)
    return tmp_path / "campaign"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Command:
    def run(*arguments: object) -> int:
        words = ["vnet", "campaign", "fetch", *map(str, arguments), "--on", "tls://lab-1:8786"]
        monkeypatch.setattr("sys.argv", words)
        return main()

    return run


def test_captures_come_in_pieces(
    client: Client, campaign: Path, ran: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(campaign, "a.r1") == 0
    said = capsys.readouterr()
    assert "a.r1: 1 captures, 0.0 MB from lab-2" in said.err and "captures of 1 run are here" in said.out
    assert (campaign / "runs" / "a.r1" / "pcap" / "all.pcap").read_bytes() == WHOLE
    assert not (campaign / "runs" / "a.r1" / "pcap.part").exists()
    assert [line["cell"] for line in captures.away(campaign)] == ["b.r1"]


def test_a_machine_without_a_worker_is_named_and_the_others_come(
    client: Client, campaign: Path, ran: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(campaign) == 3
    assert "cell b.r1: its captures are on lab-3 in " in capsys.readouterr().err
    assert (campaign / "runs" / "a.r1" / "pcap").exists()


def test_a_worker_that_goes_leaves_nothing_that_looks_whole(
    client: Client, campaign: Path, ran: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    client.there = False
    assert ran(campaign, "a.r1") == 3 and "its worker went meanwhile" in capsys.readouterr().err
    assert not (campaign / "runs" / "a.r1" / "pcap").exists()
    client.there = True
    assert ran(campaign, "a.r1") == 0


def test_refused(client: Client, campaign: Path, ran: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(campaign, "a.r2") == 2 and 'did you mean "a.r1"' in capsys.readouterr().err
    assert ran(campaign.parent) == 3 and "holds no cells.jsonl" in capsys.readouterr().err
    (campaign / "cells.jsonl").write_text("")
    assert ran(campaign) == 0 and "all captures are here" in capsys.readouterr().out
