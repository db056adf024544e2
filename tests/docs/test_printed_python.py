"""Tests the Python and SQL that the pages print: the tests of docs/pytest.md and the programs of
docs/python.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from printed import ROOT, Block, blocks

sys.path.insert(0, str(ROOT / "tests/virtual"))
from virtual_place import kernel_missing

RUN = "results/mqtt-many-to-one/20260921T120000"  # the run directory in the printed code
NEEDS_KERNEL = pytest.mark.skipif(kernel_missing() is not None, reason=str(kernel_missing()))


def printed(page: str, number: int, language: str = "python") -> Block:
    found = [block for block in blocks() if block.page == page and block.info == language]
    return found[number]


def run(place: Path, *argv: str) -> str:
    """Runs Python in `place` and returns its output; asserts that it succeeds and leaves nothing of a lab."""
    state = place / "s"
    environment = os.environ | {"VNET_STATE_DIR": str(state), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *argv],
        cwd=place, env=environment, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert not state.exists() or list(state.iterdir()) == []
    return done.stdout


def test_every_block_of_python_has_who_runs_it() -> None:
    untitled = [block for block in blocks() if block.info in ("python", "sql")]  # the tutorial's have a title
    assert [(block.page, block.info) for block in untitled] == [
        ("docs/pytest.md", "python"),
        *[("docs/python.md", language) for language in ("python", "python", "python", "sql", "python")],
    ], "a new block: a test of its own below"


@NEEDS_KERNEL
def test_the_tests_of_the_plugins_page_pass(tmp_path: Path) -> None:
    (tmp_path / "test_page.py").write_text(printed("docs/pytest.md", 0).text)
    shutil.copy(ROOT / "topologies/udp-request.yaml", tmp_path)
    assert "2 passed" in run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py")


@NEEDS_KERNEL
def test_a_run_is_read(tmp_path: Path) -> None:
    file, small = ROOT / "topologies/mqtt-many-to-one.yaml", ("-p", "clients=2", "-p", "hold=2s")
    run(
        tmp_path,
        "-m",
        "orchestrator.cli.main",
        "run",
        str(file),
        *small,
        "--time",
        "virtual",
        "--results",
        "made",
    )
    (made,) = (tmp_path / "made/mqtt-many-to-one").iterdir()
    (tmp_path / RUN).parent.mkdir(parents=True)
    made.rename(tmp_path / RUN)
    run(tmp_path, "-c", printed("docs/python.md", 0).text)


@NEEDS_KERNEL
def test_a_lab_is_impaired_and_a_run_is_shown(tmp_path: Path) -> None:
    shutil.copy(ROOT / "topologies/udp-request.yaml", tmp_path)
    said = run(tmp_path, "-c", printed("docs/python.md", 1).text)
    assert "delay_ns" in said and "50000000" in said and "latency_p99" in said
    means = [float(line.split("/")[4]) for line in said.splitlines() if line.startswith("rtt ")]
    assert len(means) == 2 and means[1] > max(means[0] + 20, 90), said


def test_a_data_set_is_queried(tmp_path: Path) -> None:
    """Shows that the printed Python and SQL query a data set of two runs, laid out as `vnet campaign dataset`
    does it (tests/reports/test_reports_dataset.py).
    """
    for qos, latencies in ((0, [1, 2, 3]), (1, [4, 5, 6])):
        levels = f"level_qos={qos}/level_topology=mqtt-many-to-one"
        cell = tmp_path / f"results/c/dataset/messages/cell=q{qos}/repetition=1/{levels}"
        cell.mkdir(parents=True)
        pl.DataFrame({"latency_ns": latencies}).write_parquet(cell / "run.parquet")
    asked = printed("docs/python.md", 2).text + "\nprint(sorted(tails.collect().rows()))"
    assert run(tmp_path, "-c", asked) == "[(0, 3.0), (1, 6.0)]\n"
    sql = f"import duckdb; print(sorted(duckdb.sql({printed('docs/python.md', 0, 'sql').text!r}).fetchall()))"
    assert run(tmp_path, "-c", sql).startswith("[(0, 3e-06), (1, 6e-06)]\n")


def test_a_topology_is_built(tmp_path: Path) -> None:
    run(tmp_path, "-c", printed("docs/python.md", 3).text)
    run(tmp_path, "-m", "orchestrator.cli.main", "plan", "pair.yaml")
