"""Tests that figures of programs are in summary.json, expectations, the page and comparisons of runs, and
that a log in an unknown format is reported and does not affect the run's other figures.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from judging import cell_of, judgement, verdict
from pages import check_page
from synthetic import write_run
from synthetic_shape import Shape

from contract.codec import to_json
from contract.plan import Bounds
from contract.plan.plan import Plan
from orchestrator.cli import headlines
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse
from reports.metrics.metric import Of, find
from reports.metrics.summary import summarise
from reports.report import report
from reports.rundir import read_run

OUTPUTS = Path(__file__).parent / "program_outputs"
FILE = """\
name: own
segments: {here: {subnet: 10.1.0.0/24}}
nodes:
  load:
    segment: here
    software:
      wrk: {command: wrk, figures: {from: log, format: wrk}}
      other: {command: other, figures: {from: log, format: ab}}
      disk: {command: fio, figures: {from: log, format: fio}}
run: {hold: 10 s}
"""
P99 = {"name": "program_latency_p99", "unit": "ms"}


def planned(expect: str = "") -> Plan:
    return make_plan(parse("own.yaml", (FILE + expect).encode()))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Returns a run with messages whose plan also names figures of three programs; one log has another
    format.
    """
    made = write_run(tmp_path / "run", Shape(hold_s=20))
    (made / "plan.json").write_text(to_json(planned()))
    logs = made / "raw/logs"
    logs.mkdir(parents=True)
    shutil.copy(OUTPUTS / "wrk.txt", logs / "load.wrk.log")
    shutil.copy(OUTPUTS / "wrk.txt", logs / "load.other.log")
    shutil.copy(OUTPUTS / "fio.json", logs / "load.disk.log")
    return made


def test_figures_are_metrics_with_log_and_line(run: Path) -> None:
    metrics = summarise(read_run(run))
    p99 = find(metrics, "program_latency_p99", Of(program="load/wrk"))
    assert p99 is not None and (p99.value, p99.low, p99.high, p99.n) == (2.02, 1.42, 9.78, 3962)
    assert p99.unit == "ms" and p99.method.startswith("wrk, raw/logs/load.wrk.log:10;")
    assert find(metrics, "program_rate", Of(program="load/disk read")) is not None
    assert not any(m.of.program == "load/other" for m in metrics)
    assert any(m.name == "latency_p99" for m in metrics), "the run's other figures stay"


def test_expectations_judge_them_by_their_interval(run: Path) -> None:
    cell, of = cell_of(run), {"program": "load/wrk"}
    assert verdict(cell, **P99, of=of, bounds=Bounds(below=10)) == "holds"
    assert verdict(cell, **P99, of=of, bounds=Bounds(below=5)) == "cannot tell"
    assert verdict(cell, **P99, of=of, bounds=Bounds(below=1)) == "fails"
    exact = {"name": "program_requests", "unit": "requests", "of": of}
    assert verdict(cell, **exact, bounds=Bounds(at_least=3962)) == "holds"


def test_a_log_of_another_format_cannot_meet_a_bound(run: Path) -> None:
    said, why = judgement(cell_of(run), **P99, of={"program": "load/other"}, bounds=Bounds(below=10))
    assert said == "cannot tell" and "raw/logs/load.other.log:13: no line `Complete requests: N` of ab" in why
    assert verdict(cell_of(run), **P99, of={}, bounds=Bounds(below=10)) == "cannot tell", "all must meet it"


def test_the_page_shows_the_figures_and_tells_the_log_without(run: Path) -> None:
    text = check_page(report(run))
    assert '<section id="programs">' in text and "load/disk read" in text
    assert "raw/logs/load.other.log:13: no line" in text
    assert "load/wrk: latency p99, ms" in text
    assert any("raw/logs/load.other.log:13" in line for line, _ in headlines.unread(run))


def test_a_missing_log_is_told(run: Path) -> None:
    (run / "raw/logs/load.wrk.log").unlink()
    said, why = judgement(cell_of(run), **P99, of={"program": "load/wrk"}, bounds=Bounds(below=10))
    assert said == "cannot tell" and "raw/logs/load.wrk.log: is not there" in why


def test_expectations_name_programs_that_print_figures() -> None:
    (one,) = planned('expect: ["program_latency_p99[program=load/wrk] < 500 ms"]').expectations
    assert (one.name, one.of, one.unit) == ("program_latency_p99", {"program": "load/wrk"}, "ms")
    (part,) = planned('expect: ["program_rate[program=load/disk write] > 5"]').expectations
    assert part.of == {"program": "load/disk write"}
    for wrong in ("load/nothing", "load/disk"):  # fio has figures of reads, writes and trims, not of the disk
        with pytest.raises(TopologyError, match="no program is called that"):
            planned(f'expect: ["program_latency_p99[program={wrong}] < 500 ms"]')


def test_a_format_that_nobody_reads_is_refused_with_those_that_are() -> None:
    text = FILE.replace("format: wrk", "format: jmeter")
    with pytest.raises(TopologyError) as caught:
        parse("own.yaml", text.encode())
    assert "own.yaml:7" in str(caught.value) and "wrk2" in str(caught.value)
