"""Tests the replay of finished runs, and campaigns as a matrix."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command_line import PROJECT, CommandLine
from page_lab import planned, served
from starlette.testclient import TestClient

from orchestrator.cli.page.runs import allowed, runs, single

SECOND = 10**9
T0 = 1_800_000_000 * SECOND


@pytest.fixture(scope="module")
def plan() -> dict[str, Any]:
    return planned("pair")


@pytest.fixture
def results(tmp_path: Path, plan: dict[str, Any]) -> Path:
    """Returns the results directory with a run of three seconds in which all data are known."""
    run = tmp_path / "pair" / "1"
    (run / "raw").mkdir(parents=True)
    (run / "pcap").mkdir()
    (run / "pcap" / "lan.pcap").touch()
    (run / "plan.json").write_text(json.dumps(plan))
    (run / "manifest.json").write_text(json.dumps({"lab": "pair", "state": "complete", "t0_ns": T0}))
    (run / "raw" / "events.jsonl").write_text('{"t_ns": 1, "action": "link-down", "targets": ["x"]}\ncut sho')
    times = [T0 + n * SECOND for n in range(4)]
    pl.DataFrame(
        {
            "t_ns": times,
            "node": ["left"] * 4,
            "cpu_share": [None, 0.1, 0.2, 0.3],
            "memory_bytes": [5] * 4,
            "rx_bps": [None, 1.0, 2.0, 3.0],
            "tx_bps": [None, 4.0, 5.0, 6.0],
        }
    ).write_parquet(run / "nodes.parquet")
    pl.DataFrame(
        {
            "t_ns": times * 2,
            "link": ["left-access"] * 8,
            "direction": ["forward"] * 8,
            "class": [None] * 4 + ["voice"] * 4,
            "bps": [None, 7.0, 8.0, 9.0] * 2,
            "pps": [None, 1.0, 1.0, 1.0] * 2,
            "dropped": [0, 0, 5, 5] * 2,
            "packets": [0, 10, 15, 15] * 2,
            "backlog_bytes": [0, 0, 42, 0] * 2,
        },
        schema_overrides={"class": pl.String},
    ).write_parquet(run / "links.parquet")
    pl.DataFrame(
        {
            "flow": [0, 0, 0],
            "class": ["ask"] * 3,
            "name": ["left.ask"] * 3,
            "receiver": ["one", "two", "one"],
            "seq": [0, 0, 1],
            "outcome": ["settled", "settled", "unsettled"],
            "scheduled_ns": [T0 + SECOND // 2] * 2 + [T0 + SECOND * 3 // 2],
            "received_ns": [T0 + SECOND // 2 + 10, T0 + SECOND // 2 + 30, None],
            "latency_ns": [10, 30, None],
        }
    ).write_parquet(run / "messages.parquet")
    return tmp_path


@pytest.fixture
def client(results: Path) -> TestClient:
    return served(results)[0]


def test_a_replay_gives_what_the_tables_say(client: TestClient) -> None:
    about = client.get("/api/run/pair/1").json()
    assert (about["frames"], about["from_ns"], about["status"]["state"]) == (3, T0, "complete")
    assert [e["action"] for e in about["events"]] == ["link-down"] and about["captures"] == ["lan.pcap"]
    first, second, third = client.get("/api/frames/pair/1?from=0&count=3").json()
    assert first["t_ns"] == T0 + SECOND
    assert first["nodes"]["left"] == {"cpu": 0.1, "memory_bytes": 5, "rx_bps": 1.0, "tx_bps": 4.0}
    assert second["links"]["left-access"]["forward"] == {
        "bps": 8.0,
        "pps": 1.0,
        "dropped": 0.5,
        "backlog_bytes": 42,
    }
    assert first["flows"]["ask"] == {
        "settled": 1,
        "received": 2,
        "unsettled": 0,
        "judged": 2,
        "lost": 0,
        "latency_p50_ns": 20.0,
        "latency_max_ns": 30,
    }
    assert first["each"]["left.ask"] == first["flows"]["ask"]
    assert {name: value for name, value in second["flows"]["ask"].items() if value} == {"unsettled": 1}
    assert third["nodes"]["left"]["cpu"] == 0.3 and third["flows"] == {}


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/api/run/none", 404, "no such directory"),
        ("/api/run/pair%2F..%2F..", 404, "no such directory"),
        ("/api/frames/pair/1?from=-1&count=3", 409, "from at least 0"),
        ("/api/frames/pair/1?from=0&count=999999", 409, "count from 1 to 60"),
        ("/api/frames/pair/1?from=x&count=1", 409, "give from and count"),
        ("/api/campaign/pair/1", 404, "no such directory"),
    ],
)
def test_what_cannot_be_played_is_said(client: TestClient, path: str, status: int, said: str) -> None:
    answer = client.get(path)
    assert answer.status_code == status and said in answer.text


def test_runs_of_older_versions_and_damaged_ones_are_said(results: Path, client: TestClient) -> None:
    run = results / "pair" / "1"
    (run / "nodes.parquet").write_bytes(b"no table")
    assert "of another version or damaged" in client.get("/api/run/pair/1").text
    pl.DataFrame({"t_ns": [T0, T0 + 5 * SECOND]}).write_parquet(run / "nodes.parquet")
    assert "of another version or damaged" in client.get("/api/frames/pair/1?from=0&count=1").text
    (run / "nodes.parquet").unlink()
    assert "has no tables" in client.get("/api/run/pair/1").text
    (run / "plan.json").write_text('{"format": 1}')
    assert "plan is of format 1" in client.get("/api/run/pair/1").text
    (run / "plan.json").write_text("{")
    assert "plan.json: JSONDecodeError" in client.get("/api/run/pair/1").text


def test_a_campaign_shows_every_cell_that_is_planned(tmp_path: Path) -> None:
    cells = [{"cell": f"qos-{q}.r{r}", "levels": {"qos": q}, "repetition": r} for q in (0, 1) for r in (1, 2)]
    directory = tmp_path / "k"
    (directory / "runs" / "a").mkdir(parents=True)
    (directory / "campaign.json").write_text(json.dumps({"name": "k", "cells": cells, "command": "vnet"}))
    ended = [
        {"cell": "qos-0.r1", "state": "complete", "run_dir": "runs/a", "wall_s": 6},
        {"cell": "qos-0.r2", "state": "failed", "run_dir": "runs/b", "error": "<b>"},
    ]
    (directory / "cells.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in ended))
    (directory / "runs" / "a" / "manifest.json").write_text('{"suspect": true}')
    (directory / "running.json").write_text(json.dumps({"cell": "qos-1.r1", "run_dir": "runs/c"}))
    found = served(tmp_path)[0].get("/api/campaign/k").json()
    assert [c["state"] for c in found["cells"]] == ["complete", "failed", "running", "to come"]
    assert found["left_s"] == 12.0 and found["cells"][0]["suspect"] and found["cells"][1]["error"] == "<b>"
    (directory / "campaign.json").write_text("{")
    assert "is damaged" in served(tmp_path)[0].get("/api/campaign/k").text


def test_the_command_prints_the_address_and_ends_by_ctrl_c(vnet: CommandLine) -> None:
    """Shows that the command serves without results, too, because labs may run, and refuses a port in use."""
    process = vnet.start("serve", "--port", "0")
    assert process.stderr is not None
    address = re.search(r"http://\S+", process.stderr.readline())
    assert address is not None
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(address[0], timeout=60) as answer:
        assert b"Labs on this machine" in answer.read()
    port = str(urllib.parse.urlsplit(address[0]).port)
    assert "give another, or 0" in vnet("serve", "--port", port, status=1).stderr
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    assert "Traceback" not in process.stderr.read()


def test_no_results_directory_is_said(vnet: CommandLine) -> None:
    assert "no such directory" in vnet("serve", "--results", "nowhere", status=1).stderr


def test_no_other_command_loads_the_server(vnet: CommandLine) -> None:
    loaded = "import sys, orchestrator.cli.ls, orchestrator.cli.link, orchestrator.cli.serve"
    code = f"{loaded}; print(sorted({{'starlette', 'uvicorn', 'websockets', 'polars'}} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_campaigns_directory_is_shown_by_itself(tmp_path: Path) -> None:
    campaign = tmp_path / "results" / "levels"
    (campaign / "runs" / "a.r1").mkdir(parents=True)
    (tmp_path / "results" / "other" / "1").mkdir(parents=True)
    (campaign / "campaign.json").write_text('{"name": "levels"}')
    for run in (campaign / "runs" / "a.r1", tmp_path / "results" / "other" / "1"):
        (run / "manifest.json").write_text('{"lab": "x", "state": "complete"}')
    root, only = single(campaign)
    assert (root, only) == (tmp_path / "results", "levels")
    found = runs(root, only)
    assert [one["path"] for one in found["campaigns"]] == ["levels"]
    assert [one["path"] for one in found["runs"]] == ["levels/runs/a.r1"]
    assert allowed(root, "levels/campaign.json", only) == campaign / "campaign.json"
    assert allowed(root, "other/1/manifest.json", only) is None
    assert allowed(root, "levels/../other/1/manifest.json", only) is None
    assert single(tmp_path / "results") == (tmp_path / "results", "")


def test_without_a_results_directory_only_labs_are_listed(tmp_path: Path) -> None:
    assert runs(tmp_path / "results") == {"runs": [], "more": 0, "campaigns": []}
