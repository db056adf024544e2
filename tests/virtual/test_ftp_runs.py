"""Tests FTP in virtual time: every file is accounted for, also those lost by a cut of the link."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from virtual_place import PROJECT, Place

from orchestrator.software.ftp.kind import KIND

SERVER = Path(KIND.programs[0].name)
DOWN, UP = "engineer.transfers.download", "engineer.transfers.upload"
CUT = """
timeline:
  - {at: hold + 5.05 s, link-down: line, for: 7 s}
"""


@pytest.mark.skipif(not SERVER.exists(), reason="no pyftpdlib (make setup installs it)")
def test_files_come_whole_and_those_that_a_cut_takes_are_given_up(place: Place, tmp_path: Path) -> None:
    text = (PROJECT / "topologies" / "ftp.yaml").read_text()
    text = text.replace("to: files\n", "to: files\n          timeout: 2 s\n")
    file = tmp_path / "ftp.yaml"
    file.write_text(text + CUT)
    run = place.run("-p", "hold=20s", file=str(file))
    moved = pl.read_parquet(run.run_dir / "messages.parquet").filter(pl.col("class").is_in([DOWN, UP]))
    assert dict(moved.group_by("class").len().iter_rows()) == {DOWN: 38, UP: 19}, "every file that was due"
    given_up = moved.filter(pl.col("outcome") != "settled")
    assert set(given_up["outcome"]) == {"unsettled", "unsent"}, "in transfer, and before a session"
    cut_ns = run.manifest["phases"]["hold"][0] + 5_050_000_000
    assert given_up["scheduled_ns"].is_between(cut_ns - 10**9, cut_ns + 7 * 10**9).all()
    came = moved.filter(pl.col("outcome") == "settled")
    assert came["received_ns"].null_count() == 0
    whole = came.filter(pl.col("class") == DOWN)["round_trip_ns"]
    assert whole.min() > 160_000_000, "200 kB take 160 ms at 10 Mbit/s"

    sessions = pl.read_parquet(run.run_dir / "sessions.parquet")
    sessions = sessions.filter(pl.col("endpoint") == "engineer1-transfers")
    assert "timed out" in sessions["detail"].to_list()
    assert sessions["what"].to_list()[-1] == "disconnected", "all has been moved"
