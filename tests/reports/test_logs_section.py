"""Tests the page's section on logs: their last lines, with the times at which the agent read them."""

from __future__ import annotations

from pathlib import Path

from pages import check_page
from synthetic import write_run
from synthetic_shape import Shape

from reports.report import report
from reports.roles import phases
from reports.rundir import read_run

LINES = 700


def logged(tmp_path: Path, times: str | None) -> str:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    logs = run / "raw" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    text = "".join(f"line {number}\n" for number in range(LINES))
    (logs / "server.web.log").write_text(text + "\x1b[31m<script>\x07</script>\x1b[0m\n" + "x" * 900)
    (logs / "empty.web.log").write_text("")
    if times is not None:
        (logs / "server.web.times").write_text(times)
    return check_page(report(run))


def hold_ns(tmp_path: Path) -> int:
    hold = phases(read_run(tmp_path / "run"))["hold"]
    return hold.start_ns


def test_a_line_has_the_time_of_the_part_in_which_it_was_read(tmp_path: Path) -> None:
    logged(tmp_path, None)
    start = hold_ns(tmp_path)
    at = sum(len(f"line {number}\n") for number in range(650))
    times = f"{start - 500_000_000},0\nnonsense\n{start + 1_250_000_000},{at}\n"
    (tmp_path / "run" / "raw" / "logs" / "server.web.times").write_text(times)
    page = check_page(report(tmp_path / "run"))
    assert "    -0.500  line 649\n" in page and "     1.250  line 650\n" in page
