"""Runs the ladders of a calibration under one kernel, and computes the calibration from their results."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from contract import manifest
from orchestrator.calibrate.judge import Step, bits_per_s, limit, steps
from orchestrator.calibrate.ladder import LADDERS, Ladder
from orchestrator.calibrate.store import Calibration
from orchestrator.kernel.lab_command import machine
from orchestrator.run.directories import Place, RunError
from orchestrator.run.prepare import Request, begin
from orchestrator.run.run import Event, execute

Tell = Callable[[Ladder, Sequence[Step]], None]
# Number of runs of a ladder whose lowest load was not carried, since another program may have run for a
# moment.
TRIES = 3


def calibrate(kernel: str, tell: Tell, ladders: Sequence[Ladder] = LADDERS) -> Calibration:
    """Measures this machine in real time under a kernel ("auto": the first kernel that can run the ladders);
    calls `tell` after each ladder. Raises RunError if a ladder does not complete, or if not even its first
    step was faithful in `TRIES` runs.
    """
    found: dict[str, list[Step]] = {}
    with tempfile.TemporaryDirectory(prefix="vnet-calibrate-") as place:
        for ladder in ladders:
            for number in range(TRIES):
                known, found[ladder.name] = _climb(ladder, kernel, Path(place) / f"{ladder.name}-{number}")
                if limit(found[ladder.name]) > 0:
                    break
            tell(ladder, found[ladder.name])
            _insist(ladder, found[ladder.name])
    link, every, link_bits, all_bits = (found[ladder.name] for ladder in ladders)
    return Calibration(
        kernel=str(known.kernel.get("kind", kernel)),
        release=str(known.kernel.get("release", "")),
        machine=machine(),
        date=datetime.now(UTC).date().isoformat(),
        link_packets_per_s=limit(link),
        packets_per_s=limit(every),
        link_bits_per_s=bits_per_s(ladders[2], limit(link_bits)),
        bits_per_s=bits_per_s(ladders[3], limit(all_bits)),
        messages_per_s=limit(every, sends_only=True),
        timer_error_ns=every[0].timer_ns if every else 0,
    )


def climb(ladder: Ladder, kernel: str = "auto") -> list[Step]:
    """Runs one ladder under a kernel and returns its steps; RunError if it does not complete."""
    with tempfile.TemporaryDirectory(prefix="vnet-calibrate-") as place:
        return _climb(ladder, kernel, Path(place) / ladder.name)[1]


def _insist(ladder: Ladder, found: Sequence[Step]) -> None:
    """Raises RunError if the machine was not faithful at the lowest load, because it is busy or too slow."""
    if limit(found) > 0:
        return
    first = found[0] if found else None
    seen = (
        f"{first.late_share:.0%} of the messages left late, {first.slow_share:.0%} arrived late, "
        f"{first.lost_share:.0%} were lost"
        if first is not None
        else "nothing was sent"
    )
    raise RunError(
        f"calibration, {ladder.name}: at {ladder.first_per_s:,.0f} packets/s {seen}, in the last of {TRIES} "
        "runs; nothing was kept: repeat it when the machine is idle"
    )


def _climb(ladder: Ladder, kernel: str, place: Path) -> tuple[manifest.Manifest, list[Step]]:
    """Runs one ladder in a directory that it makes; returns the manifest and the steps."""
    place.mkdir()
    file = place / f"{ladder.name}.yaml"
    file.write_text(ladder.topology())
    prepared, run_dir = begin(Request(file, {}, kernel=kernel), Place(None, place))
    outcome = execute(prepared, run_dir, _quiet, page=False)
    known = manifest.load(run_dir)
    if outcome.state != "complete" or not (begins := [start for start, _ in known.phases.values()]):
        raise RunError(
            f"calibration, {ladder.name}: {outcome.error or outcome.state}; `vnet doctor` says what this "
            "machine lacks"
        )
    messages = pl.read_parquet(run_dir / "messages.parquet")
    return known, steps(ladder, messages, min(begins))


def _quiet(_event: Event) -> None:
    """Ignores the events of a ladder, so that no progress is shown."""
