"""Runs a recorded run in virtual time again up to a moment, and from there on differently.

The guest starts from the beginning: repetition makes its state at the moment the recorded one. Whether it was
is not assumed but compared: packets and arrivals before the moment must be equal.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from contract import manifest as manifests
from contract import rundir
from contract.manifest import Manifest
from contract.plan import Event, Plan
from contract.verdict import FAILS, HOLDS, OPEN
from orchestrator.language.problem import TopologyError
from orchestrator.language.source import read_document
from orchestrator.plan.build import make_plan
from orchestrator.run.pauses import PauseError, moment_of
from orchestrator.topology.loading import parse
from orchestrator.verify.difference import Difference, packets_of
from orchestrator.verify.verify import VerifyError

NAME = "fork.json"  # in the forked run's directory
HERE = "--event"


class ForkError(ValueError):
    """Raised if a run cannot be forked as requested; the text gives the value, the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Equality:
    """Whether a fork equals its run before the moment of the fork. verdict: holds, fails, or cannot tell if
    the run has neither packets nor arrivals before it. packets, arrivals: how many of the run's were
    compared.
    """

    verdict: str
    packets: int
    arrivals: int
    first: Difference | None


def forked(run_dir: Path, at: str, events: Sequence[str], seed: int | None) -> tuple[Plan, int]:
    """Returns the plan of the run in `run_dir` with further events from the moment `at` on, and that moment
    (ns after the start of the scenario). events: YAML mappings like those of a timeline; without `at` they
    are due at the moment. seed: the one from which links and programs draw from then on; None keeps the
    run's. Raises ForkError for a moment or an event that the run cannot have, TopologyError for a faulty
    event.
    """
    plan = rundir.read_plan(run_dir)
    try:
        moment = moment_of(at, plan)
    except PauseError as error:
        raise ForkError(str(error).replace("--pause-at", "--at")) from error
    begin = _starts(plan)[moment.phase] + moment.at_ns
    if begin >= plan.ramp_ns + plan.hold_ns + plan.drain_ns:
        raise ForkError(f"--at {at!r}: the run has ended before; its phases: {_phases(plan)}")
    if not events and seed is None:
        raise ForkError("nothing is to be different: give --event or --seed; `vnet verify` runs it unchanged")
    found = _added(run_dir, plan, moment.said, events) if events else ()
    for event in found:
        if _starts(plan)[event.phase] + event.at_ns < begin:
            raise ForkError(
                f"{HERE}: {event.label}: is due before --at {at}; the past of a run stays as it was"
            )
    if seed is not None:
        label = f"fork: seed {seed}"
        found = (*found, Event(moment.phase, moment.at_ns, "seed", (), {"seed": seed}, label))  # type: ignore[arg-type]
    later = sorted((*plan.events, *found), key=lambda one: _starts(plan)[one.phase] + one.at_ns)
    return replace(plan, events=tuple(later)), begin


def _added(run_dir: Path, plan: Plan, at: str, texts: Sequence[str]) -> tuple[Event, ...]:
    """Returns the events that the texts add to the run's own file; raises ForkError if more would change."""
    file = run_dir / "topology.yaml"
    data: Any = read_document(str(file), file.read_bytes()).data
    kept = [*(data.get("timeline") or ())]
    before, after = (
        _plan(file, {**data, "timeline": timeline}, plan)
        for timeline in (kept, [*kept, *(_event(text, at) for text in texts)])
    )
    if replace(before, events=(), topology="") != replace(plan, events=(), topology=""):
        raise ForkError(
            f"{file}: gives another plan than the run had: a file that it names, or vNET, has changed; "
            "fork with --seed alone, or run it again first"
        )
    if replace(after, events=()) != replace(before, events=()):
        raise ForkError(
            f"{HERE}: needs another network from the start (as a partition does, which cuts links that the "
            "run did not have); put it into the file and run that"
        )
    found = list(after.events)
    for event in before.events:
        found.remove(event)
    return tuple(found)


def _event(text: str, at: str) -> dict[str, Any]:
    document = read_document(HERE, text.encode())
    if not isinstance(document.data, dict):
        raise ForkError(
            f"{HERE} {text!r}: is no event of a timeline; write for example "
            "'{impair: wan, both: {loss: 5 %}}'"
        )
    return {"at": at, **document.data}


def _plan(file: Path, data: dict[str, Any], plan: Plan) -> Plan:
    from orchestrator.hunt.files import dumped

    text = dumped(data)
    try:
        topology = parse(str(file), text.encode(), plan.parameters)
        made = make_plan(topology, plan.lab, plan.seed)
    except TopologyError as error:
        raise TopologyError(
            [replace(one, line=0) for one in error.problems]  # lines of the text that was written here
        ) from error
    return replace(made, clock_ns=plan.clock_ns, notes=plan.notes)


def record(run_dir: Path, fresh: Path, at_ns: int, told: dict[str, Any], found: Equality) -> None:
    """Writes `fork.json` into the new run's directory: the run, the moment, what is different, and the
    verdict on the time before.
    """
    data = {"of": str(run_dir), "at_ns": at_ns, **told, "before": asdict(found)}
    (fresh / NAME).write_text(json.dumps(data, indent=1) + "\n")


def equal_before(run_dir: Path, fresh: Path, at_ns: int) -> Equality:
    """Compares the two runs up to `at_ns` after the start of their scenarios: the packets of each capture and
    the arrivals of messages. Raises VerifyError if one has no scenario.
    """
    starts = [_start(one) for one in (run_dir, fresh)]
    if starts[0] != starts[1]:
        return Equality(FAILS, 0, 0, Difference("manifest.json", "t0_ns", *map(str, starts)))
    until_ns = starts[0] + at_ns
    packets = 0
    for path in sorted((run_dir / "pcap").glob("*.pcap")):
        sides = [
            [one for one in packets_of(place / "pcap" / path.name) if one[0] < until_ns]
            for place in (run_dir, fresh)
        ]
        packets += len(sides[0])
        if sides[0] != sides[1]:
            return Equality(FAILS, packets, 0, _first(f"pcap/{path.name}", "packet", *sides))
    lines = [sorted(_arrivals(place, until_ns)) for place in (run_dir, fresh)]
    if lines[0] != lines[1]:
        return Equality(FAILS, packets, len(lines[0]), _first("raw/messages.csv", "arrival", *lines))
    verdict = HOLDS if packets or lines[0] else OPEN
    return Equality(verdict, packets, len(lines[0]), None)


def _first(name: str, what: str, before: list[Any], again: list[Any]) -> Difference:
    number = next(
        (i for i, (one, other) in enumerate(zip(before, again, strict=False)) if one != other),
        min(len(before), len(again)),
    )
    sides = [_shown(one[number]) if number < len(one) else "absent" for one in (before, again)]
    return Difference(name, f"{what} {number + 1}", *sides)


def _shown(one: Any) -> str:
    return one if isinstance(one, str) else f"at {one[0]} ns, {len(one[1])} bytes: {one[1][:32].hex()}"


def _arrivals(run_dir: Path, until_ns: int) -> list[str]:
    """Returns the lines of arrivals before `until_ns` (docs/contracts/records.md)."""
    path = run_dir / "raw" / "messages.csv"
    lines = path.read_text().splitlines() if path.exists() else []
    return [one for one in lines if one.startswith("R,") and int(one.split(",")[-2]) < until_ns]


def _start(run_dir: Path) -> int:
    found: Manifest = manifests.load(run_dir)
    if not found.t0_ns:
        raise VerifyError(f"{run_dir}: its scenario did not begin")
    return found.t0_ns


def _starts(plan: Plan) -> dict[str, int]:
    return {"ramp": 0, "hold": plan.ramp_ns, "drain": plan.ramp_ns + plan.hold_ns}


def _phases(plan: Plan) -> str:
    lengths = {"ramp": plan.ramp_ns, "hold": plan.hold_ns, "drain": plan.drain_ns}
    return ", ".join(f"{name} {length / 1e9:g} s" for name, length in lengths.items())
