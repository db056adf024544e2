"""Tests trials from the topology to the page over a simulated path: one run, and a campaign of sizes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from capture.ethernet import line_fps, shaped_fps

PROJECT = Path(__file__).resolve().parents[2]
TOPOLOGY = PROJECT / "topologies" / "nic-qualification.yaml"


def vnet(base: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line on the fake driver; all its paths are below `base`."""
    built = (PROJECT / "target/release/vnet-agent").exists()
    env = {**os.environ, "VNET_STATE_DIR": str(base / "s"), "COLUMNS": "200"}
    env |= {} if built else {"VNET_AGENT": "/bin/true"}
    argv = [
        sys.executable,
        "-m",
        "orchestrator.cli.main",
        *words,
        "--kernel",
        "fake",
        "--results",
        str(base / "out"),
    ]
    done = subprocess.run(argv, cwd=PROJECT, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Returns the run directory and the terminal's output."""
    base = tmp_path_factory.mktemp("page")
    said = vnet(base, "run", str(TOPOLOGY)).stdout
    (found,) = (base / "out").glob("*/*")
    return found, said


def test_every_size_has_its_row(run: tuple[Path, str]) -> None:
    _, said = run
    for size in (64, 128, 256, 512, 1024, 1280, 1518):
        assert f"{size} B" in said
    # The simulated generator sends at most a million frames a second; 64 B frames at 1 Gbit/s would be 1.49
    # million.
    assert "≥ 1,000,000" in said and f"{line_fps(1518, 1e9):,.0f}" in said


def test_the_summary_has_the_figures_of_the_rfc(run: tuple[Path, str]) -> None:
    summary = json.loads((run[0] / "summary.json").read_text())
    known = {(m["name"], m["frame_bytes"]): m for m in summary}
    assert known["throughput", 512]["value"] == pytest.approx(line_fps(512, 1e9), abs=0.01)
    assert known["throughput_of_line", 512]["value"] == pytest.approx(100)
    assert known["throughput_bits", 512]["value"] == pytest.approx(line_fps(512, 1e9) * 512 * 8 / 1e6)
    assert known["back_to_back", 512]["n"] == 3
    assert known["latency_tagged", 512]["unit"] == "us"
    assert known["throughput", 64]["limits"] == ["tester"]


def test_the_hold_covers_all_trials(run: tuple[Path, str]) -> None:
    manifest = json.loads((run[0] / "manifest.json").read_text())
    trials = pl.read_parquet(run[0] / "trials.parquet")
    begin, end = manifest["phases"]["hold"]
    assert trials.get_column("t_ns").is_between(begin, end).all()


def test_the_page_speaks_of_trials_and_not_of_brokers(run: tuple[Path, str]) -> None:
    page = (run[0] / "report" / "index.html").read_text()
    places = [
        page.index(f'id="{name}"')
        for name in ("trust", "headline", "trials", "topology", "method", "provenance", "repeat")
    ]
    assert places == sorted(places)
    for key in ("throughput", "latency", "frame-loss", "back-to-back"):
        assert f'id="rfc2544-{key}"' in page
        assert (run[0] / "report" / "figures" / f"rfc2544-{key}.svg").exists()
    for word in ("broker", "QoS", "the paper says", "message records"):
        assert word not in page
    assert "the tester, not the path, limited the throughput of 1 of 7 frame sizes (64 B)" in page


def test_a_campaign_of_sizes_is_one_table_with_intervals(tmp_path: Path) -> None:
    file = tmp_path / "shaped.yaml"
    text = TOPOLOGY.read_text().replace('nics: "${nics}"}', 'nics: "${nics}", forward: {rate: 100 Mbit/s}}')
    text = text.replace("frame_size: [64, 128, 256, 512, 1024, 1280, 1518]", "frame_size: [64, 1518]")
    file.write_text(text.replace("repetitions: 3", "repetitions: 2"))
    said = vnet(tmp_path, "campaign", "run", str(file)).stdout
    assert "64 B" in said and "1518 B" in said
    (cells,) = (tmp_path / "out").glob("**/cells.jsonl")
    page = cells.parent / "report" / "index.html"
    rows = json.loads((cells.parent / "summary.json").read_text())
    found = {r["frame_bytes"]: r for r in rows if r["name"] == "throughput"}
    for size in (64, 1518):
        assert found[size]["repetitions"] == 2
        assert found[size]["value"] == pytest.approx(shaped_fps(size, 100e6), rel=0.03)
    assert "2 repetitions" in page.read_text() and "All searches" in page.read_text()


def test_a_comparison_sets_two_tables_side_by_side(tmp_path: Path) -> None:
    plain, shaped = (TOPOLOGY.read_text(), tmp_path / "shaped.yaml")
    shaped.write_text(plain.replace('nics: "${nics}"}', 'nics: "${nics}", forward: {rate: 100 Mbit/s}}'))
    few = ("-p", "frame_size=1518", "-p", "burst_trials=1")
    vnet(tmp_path / "a", "run", str(TOPOLOGY), *few)
    vnet(tmp_path / "b", "run", str(shaped), *few)
    (a,), (b,) = ((tmp_path / side / "out").glob("*/*") for side in "ab")
    page = tmp_path / "page.html"
    argv = [sys.executable, "-m", "orchestrator.cli.main", "compare", str(a), str(b), "--out", str(page)]
    env = {**os.environ, "COLUMNS": "250"}
    done = subprocess.run(argv, cwd=PROJECT, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    fast, slow = (f"{rate:,.0f}" for rate in (line_fps(1518, 1e9), shaped_fps(1518, 100e6)))
    rows = [line for line in done.stdout.splitlines() if line.lstrip().startswith("1518 B")]
    assert [fast in rows[0], f"A: {a.name}" in rows[0]] == [True, True], done.stdout
    assert f"B: {b.name}" in rows[1] and fast not in rows[1] and "path" in rows[1]
    assert 'id="trials"' in page.read_text() and fast in page.read_text()
    told = subprocess.run(
        [*argv, "--json"], cwd=PROJECT, env=env, capture_output=True, text=True, timeout=200
    )
    head, first, second = json.loads(told.stdout)["trials"]
    assert head[:2] == ["frame size", "side"]
    near = float(second[2].replace(",", "").split()[0])
    assert near == pytest.approx(float(slow.replace(",", "")), rel=0.03)
    assert first[2].replace(",", "").startswith(fast.replace(",", ""))
