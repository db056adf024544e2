"""Computes the metrics of programs that print their own figures, which the topology names in `figures`.

Each metric's method names the format, the log and the line of the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contract import regular
from contract.figures import KEY
from contract.metrics import METRICS
from contract.plan import Plan, Software
from reports.metrics.metric import Metric, Of
from reports.programs import READERS
from reports.programs.reading import Figure, UnreadError
from reports.rundir import Run

LOGS = "raw/logs"
MOST_BYTES = 64 << 20  # bytes; the agent writes no more into a program's log
REMEDY = "write the `format` that the program prints (docs/topology.md), or read the log"


@dataclass(frozen=True, slots=True)
class Unread:
    """A log without figures: `program` is NODE/SOFTWARE, `text` the log, the line and what is wrong there."""

    program: str
    text: str


def program_metrics(run: Run) -> list[Metric]:
    """Returns the figures of all programs whose logs are of the format that the plan names."""
    found = _read(run.path, run.plan)
    return [metric for one in found if not isinstance(one, Unread) for metric in one]


def unread(run_dir: Path, plan: Plan) -> list[Unread]:
    """Returns the logs of a run from which no figures could be read, each with file, line and the reason."""
    return [one for one in _read(run_dir, plan) if isinstance(one, Unread)]


def _read(run_dir: Path, plan: Plan) -> Iterator[list[Metric] | Unread]:
    for node in plan.nodes:
        for software in node.software:
            if KEY in software.spec:
                yield _of_program(run_dir, node.name, software)


def _of_program(run_dir: Path, node: str, software: Software) -> list[Metric] | Unread:
    format_, program = str(software.spec[KEY]), f"{node}/{software.name}"
    log = f"{LOGS}/{node}.{software.name}.log"
    if format_ not in READERS:
        return Unread(program, f"{log}: the plan names the unknown format {format_!r}")
    try:
        with regular.open_read(run_dir / log) as file:
            text = file.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return Unread(program, f"{log}: is not there or not readable ({error.strerror})")
    try:
        figures = READERS[format_](text.removesuffix("\n").split("\n"))
    except UnreadError as error:
        return Unread(program, f"{log}:{error.line}: {error.rule}, so the program has no figures")
    return [_metric(one, program, f"{format_}, {log}") for one in figures]


def _metric(one: Figure, program: str, source: str) -> Metric:
    name = f"program_{one.name}"
    of = Of(program=f"{program} {one.part}" if one.part else program)
    method = f"{source}:{one.line}" + (f"; {one.method}" if one.method else "")
    return Metric(name, of, float(one.value), METRICS[name].unit, one.n, one.low, one.high, method)
