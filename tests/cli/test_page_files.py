"""The live page serves files of runs, and no others."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_lab import HOSTILE, StandIn
from starlette.testclient import TestClient

from orchestrator.cli.page.app import STATIC
from orchestrator.cli.page.runs import allowed, runs
from orchestrator.lab.errors import LabError
from orchestrator.lab.files import part


def test_files_of_runs_and_no_others(lab: StandIn, client: TestClient) -> None:
    results = lab.run_dir.parents[1]
    (results.parent / "secret.txt").write_text("secret")
    (lab.run_dir / "out.txt").symlink_to(results.parent / "secret.txt")
    (lab.run_dir / ".hidden").write_text("hidden")
    assert client.get("/files/shown/1/manifest.json").json()["lab"] == "shown"
    for path in (
        "../secret.txt",
        "%2e%2e/secret.txt",
        "shown/1/out.txt",
        "shown/1/.hidden",
        "shown/1",
        "..%2f..%2fetc/passwd",
        "shown//1/plan.json",
        "%00",
        "/etc/passwd",
        "shown/1/%2e%2e/%2e%2e/%2e%2e/secret.txt",
        "a" * 5000,
    ):
        assert client.get(f"/files/{path}").status_code == 404, path


def test_a_report_runs_no_script(lab: StandIn, client: TestClient) -> None:
    (lab.run_dir / "report").mkdir()
    (lab.run_dir / "report" / "index.html").write_text(f"<p>{HOSTILE}</p>")
    answer = client.get("/files/shown/1/report/index.html")
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src" not in policy


@given(st.text(alphabet="./a\\\0%\u2215", max_size=12))
def test_no_path_leads_out(path: str) -> None:
    assert allowed(STATIC, path) is None or STATIC in (STATIC / path).resolve().parents


def test_runs_are_listed_whatever_stands_in_them(tmp_path: Path) -> None:
    for name, text in {
        "a/1": "{",
        "b/1": "[]",
        "c/1": json.dumps({"lab": HOSTILE, "warnings": 3, "kernel": "uml"}),
        "d/1": json.dumps({"state": "complete", "warnings": [3, {"text": "late"}]}),
        "e/1": json.dumps({"state": "complete", "warnings": []}),
    }.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "manifest.json").write_text(text)
    (tmp_path / "k").mkdir()
    (tmp_path / "k" / "campaign.json").write_text(json.dumps({"name": "k"}))
    (tmp_path / "k" / "cells.jsonl").write_text('{"cell": "x", "state": "complete"}\n{"cell": "y", "sta')
    (tmp_path / "loop").symlink_to(tmp_path)
    found = runs(tmp_path)
    assert {r["path"]: r["state"] for r in found["runs"]} == {
        "a/1": "unreadable",
        "b/1": "unreadable",
        "c/1": "unknown",
        "d/1": "complete",
        "e/1": "complete",
    }
    suspect = {r["path"]: r["suspect"] for r in found["runs"] if "suspect" in r}
    assert suspect == {"c/1": True, "d/1": True, "e/1": False}
    assert [c["cell"] for c in found["campaigns"][0]["cells"]] == ["x"]


def test_parts_of_files_stay_in_the_run_directory(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "run" / "log").write_text("0123456789")
    (tmp_path / "run" / "link").symlink_to(tmp_path / "secret")
    run = tmp_path / "run"
    assert base64.b64decode(part(run, "log", 3, 4)["data"]) == b"3456"
    assert part(run, "log", 99)["size"] == 10 and part(run, "nothing") == {"size": None}
    for path in ("../secret", "link", "/etc/passwd", ".", "", None, "log/../../secret", "a\0b"):
        with pytest.raises(LabError):
            part(run, path)
    with pytest.raises(LabError):
        part(run, "log", -1)
