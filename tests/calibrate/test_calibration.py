"""Tests calibration: measured ladders of load become limits, and a plan that exceeds one gets a warning."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from contract.manifest import Manifest
from orchestrator.calibrate import judge, run, store
from orchestrator.calibrate.demand import demand, notes
from orchestrator.calibrate.judge import Step, bits_per_s, limit, steps
from orchestrator.calibrate.ladder import LADDERS, SETTLE_S, Ladder
from orchestrator.calibrate.store import Calibration, CalibrationError
from orchestrator.cli.check import of_calibration
from orchestrator.cli.main import main
from orchestrator.kernel.lab_command import machine
from orchestrator.plan.build import make_plan
from orchestrator.run.directories import RunError
from orchestrator.topology import load

S, MS = 10**9, 10**6
SMALL = Ladder("small", 2, 64, 100, step_s=1.0, steps=3)
HERE: dict[str, Any] = {"cpu": "some", "cores": 2, "kernel": "6.1"}
KNOWN = Calibration("uml", "6.18", HERE, "2026-01-01", 40_000, 55_000, 3e8, 4e8, 55_000, 80_000)
FLOOD = """\
name: flood
segments:
  lan: {subnet: 10.1.0.0/24}
nodes:
  a: {segment: lan, software: {q: {udp: {to: b, push: {rate: RATE, size: 64 B}}}}}
  b: {segment: lan, software: {q: {udp: {listen: 7000}}}}
run: {hold: 2 s}
"""


@pytest.mark.parametrize("ladder", LADDERS, ids=lambda ladder: ladder.name)
def test_a_ladder_is_a_lab_whose_flows_rise_to_the_rates(ladder: Ladder, tmp_path: Path) -> None:
    file = tmp_path / "ladder.yaml"
    file.write_text(ladder.topology())
    plan = make_plan(load(file, {}, ()), None, None)
    assert len(plan.flows) == ladder.pairs == len(plan.links)
    offered = [0.0] * (ladder.steps + 1)
    for flow in plan.flows:
        assert flow.schedule is not None and flow.payload.bytes == ladder.payload_bytes
        for at, rate in enumerate(flow.schedule.rates):
            offered[at] += rate.per_s
    assert offered == pytest.approx([0.0, *ladder.rates()], rel=1e-4)
    assert plan.hold_ns == round((SETTLE_S + ladder.steps * ladder.step_s) * S)


def climbed(late_ms: tuple[float, ...], slow_ms: tuple[float, ...], lost: tuple[int, ...]) -> list[Step]:
    """Returns the steps of SMALL in which 5 of 100 messages are sent and received late by the given times,
    and some do not arrive.
    """
    rows = []
    for step, values in enumerate(zip(late_ms, slow_ms, lost, strict=True)):
        begin = round((SETTLE_S + step * SMALL.step_s + judge.EDGE_S) * S)
        for n in range(100):
            due = begin + n * MS
            sent = due + (round(values[0] * MS) if n < 5 else 1000)
            came = sent + (round(values[1] * MS) if n < 5 else 1000)
            rows.append((due, sent, None if n < values[2] else came))
    columns = ["scheduled_ns", "sent_ns", "received_ns"]
    return steps(SMALL, pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.Int64), orient="row"), 0)


@pytest.mark.parametrize(
    ("late_ms", "slow_ms", "lost", "faithful", "in_time"),
    [
        ((0.1, 0.1, 0.1), (0.1, 0.1, 0.1), (0, 0, 0), 225.0, 225.0),
        ((0.1, 0.1, 1.1), (0.1, 0.1, 0.1), (0, 0, 0), 150.0, 150.0),
        # steps after the first late one do not count
        ((0.1, 1.1, 0.1), (0.1, 0.1, 0.1), (0, 0, 0), 100.0, 100.0),
        ((0.1, 0.1, 0.1), (0.1, 1.1, 0.1), (0, 0, 0), 100.0, 225.0),
        ((0.1, 0.1, 0.1), (0.1, 0.1, 0.1), (0, 0, 1), 150.0, 225.0),
        ((1.1, 0.1, 0.1), (0.1, 0.1, 0.1), (0, 0, 0), 0.0, 0.0),
    ],
)
def test_the_limit_is_the_step_before_the_first_that_is_not_faithful(
    late_ms: tuple[float, ...], slow_ms: tuple[float, ...], lost: tuple[int, ...],
    faithful: float, in_time: float,
) -> None:  # fmt: skip
    found = climbed(late_ms, slow_ms, lost)
    assert (limit(found), limit(found, sends_only=True)) == (faithful, in_time)


def test_messages_that_never_left_are_late() -> None:
    rows = {"scheduled_ns": [round(1.3 * S)], "sent_ns": [None], "received_ns": [None]}
    (found,) = steps(SMALL, pl.DataFrame(rows, schema=dict.fromkeys(rows, pl.Int64)), 0)
    assert (found.late_share, found.lost_share, found.in_time) == (1.0, 1.0, False)


def test_bits_count_the_headers() -> None:
    assert bits_per_s(Ladder("x", 1, 1400, 1), 100) == 100 * 8 * 1442


def test_a_calibration_is_read_back_on_the_same_machine_only(tmp_path: Path) -> None:
    assert store.read("uml", tmp_path, HERE) is None
    store.save(KNOWN, tmp_path)
    assert store.read("uml", tmp_path, HERE) == KNOWN
    assert store.read("host", tmp_path, HERE) is None
    for name, other in (("cores", 4), ("kernel", "6.2"), ("cpu", "another")):
        assert store.read("uml", tmp_path, HERE | {name: other}) is None


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"kernel": 1}', json.dumps({**asdict(KNOWN), "machine": 3})]
)
def test_a_damaged_calibration_says_its_place_and_remedy(tmp_path: Path, text: str) -> None:
    (tmp_path / "uml.json").write_text(text)
    with pytest.raises(CalibrationError, match=r"uml\.json: is no calibration .*run `vnet calibrate`"):
        store.read("uml", tmp_path, HERE)


def flooding(place: Path, rate: str) -> Path:
    file = place / "flood.yaml"
    file.write_text(FLOOD.replace("RATE", rate))
    return file


def test_a_plan_that_asks_for_more_is_told_so(tmp_path: Path) -> None:
    quiet, loud = (make_plan(load(flooding(tmp_path, rate), {}, ()), None, None)
                   for rate in ("50000 /s", "80000 /s"))  # fmt: skip
    assert demand(loud).packets_per_s == demand(loud).messages_per_s == pytest.approx(80_000)
    assert demand(loud).bits_per_s == pytest.approx(80_000 * 8 * (64 + 42))
    assert list(notes(quiet, KNOWN)) == []
    said = [f"{one.text}; {one.remedy}" for one in notes(loud, KNOWN)]
    assert said[0] == (
        "asks for 80,000 packets/s; this machine was faithful up to 55,000 under kernel uml (vnet calibrate, "
        "2026-01-01); use --time virtual, which does not depend on the machine's speed, or less load"
    )
    assert len(said) == 2 and "80,000 messages/s" in said[1]


def test_the_highest_rate_of_a_schedule_counts(tmp_path: Path) -> None:
    steps_of = "[{from: ramp, rate: 10 /s}, {from: hold + 1 s, rate: 300 /s}]"
    plan = make_plan(load(flooding(tmp_path, steps_of), {}, ()), None, None)
    assert demand(plan).packets_per_s == pytest.approx(300)


def test_check_and_plan_warn_of_it_in_real_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = flooding(tmp_path, "80000 /s")
    plan = make_plan(load(file, {}, ()), None, None)
    assert of_calibration(plan, "real") == []  # no warning without a calibration
    for kernel in ("host", "uml"):  # one of the two kernels that this machine has
        store.save(replace(KNOWN, kernel=kernel, machine=machine()))
    assert of_calibration(plan, "virtual") == []
    for command in ("check", "plan"):
        assert main([command, str(file)]) == 0
        said = capsys.readouterr().err
        assert "flows: asks for 80,000 packets/s; this machine was faithful up to 55,000" in said


def short() -> list[Ladder]:
    return [replace(one, steps=2, step_s=0.5, first_per_s=100) for one in LADDERS]


def test_a_machine_that_is_slow_at_the_lowest_load_is_not_calibrated() -> None:
    """Shows that no calibration is written if messages take longer than 1 ms, as those of the kernel `fake`
    do.
    """
    with pytest.raises(RunError, match=r"at 100 packets/s 0% of .* 100% arrived late, .* is idle"):
        run.calibrate("fake", lambda *_: None, short())


@pytest.mark.parametrize(("busy", "tries"), [(1, 2), (2, 3), (3, 3)])
def test_a_ladder_whose_lowest_load_was_disturbed_runs_again(
    busy: int, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    climbed: list[str] = []
    shares = iter([0.5] * busy + [0.0] * 6)

    def climb(ladder: Ladder, kernel: str, place: Path) -> tuple[Manifest, list[Step]]:
        climbed.append(ladder.name)
        return Manifest(kernel={"kind": kernel}), [Step(100.0, next(shares), 0.0, 0.0, 10)]

    monkeypatch.setattr(run, "_climb", climb)
    if busy < 3:
        assert run.calibrate("fake", lambda *_: None).packets_per_s == 100.0
    else:
        with pytest.raises(RunError, match=r"50% of the messages left late, .* in the last of 3 runs"):
            run.calibrate("fake", lambda *_: None)
    assert climbed.count(LADDERS[0].name) == tries


def test_a_calibration_runs_its_ladders_and_keeps_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "LATE_NS", S)
    told: list[str] = []
    ladders = short()
    found = run.calibrate("fake", lambda ladder, _: told.append(ladder.name), ladders)
    assert told == [ladder.name for ladder in LADDERS]
    assert (found.kernel, found.machine) == ("fake", machine())
    assert 100 <= found.packets_per_s <= 150 and found.messages_per_s >= found.packets_per_s
    assert found.bits_per_s == bits_per_s(LADDERS[3], 150) and found.timer_error_ns < S


@pytest.mark.sweep
@pytest.mark.slow
def test_a_run_below_the_limit_is_faithful_and_one_above_is_not() -> None:
    """Calibrates this machine, which has to be idle, and confirms the limit by two further runs."""
    found = run.calibrate("auto", lambda *_: None)
    shape = LADDERS[1]

    def again(share: float) -> Step:
        (step,) = run.climb(replace(shape, steps=1, step_s=4.0, first_per_s=share * found.packets_per_s))
        return step

    assert again(0.7).faithful
    assert not again(2.5).faithful
