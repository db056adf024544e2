"""manifest.json of a run: its one reader and writer, whoever has something to say in it.

Standard library only: the lab process writes it inside the lab's kernel, where every import costs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

from capture import regular

NAME = "manifest.json"
COMPLETE = "complete"  # the one state that puts a result in no doubt
# Codes of warnings that a reduction gives, and so takes back when it is done again.
REDUCTION, TRUST = "reduce-", "trust-"
CHECK = "check-"  # of those that a report gives of summary.json
ALTERED = "altered"  # of one that had been changed before: no later reduction takes it back


class Kernel(TypedDict, total=False):
    """Whose kernel the lab lived in; the last two in virtual time."""

    kind: str
    release: str
    why: str
    machine: str  # URL, of a lab on another machine
    time: str
    start_ns: int
    syscall_ns: int


class Contents(TypedDict, total=False):
    """Everything that a manifest says; what each means: docs/contracts/run-directory.md."""

    lab: str
    run: str
    driver: str
    state: str
    error: str | None
    ended_by: str
    topology: str
    reference: str | None
    scenario: str | None
    parameters: dict[str, Any]
    seed: int
    kernel: Kernel
    time: str
    versions: dict[str, str]
    host: dict[str, Any]
    machine: dict[str, Any]
    inputs: dict[str, str]
    hashes: dict[str, str]
    t0_ns: int | None
    phases: dict[str, list[int]]  # [start, end], ns
    warnings: list[dict[str, Any]]  # fields of Warned
    suspect: bool
    nodes: dict[str, str]  # end states
    captures: dict[str, dict[str, Any]]
    limits: dict[str, dict[str, Any]]
    deadlines_missed: list[dict[str, Any]]
    checks: list[dict[str, Any]]  # name, verdict (holds, fails, cannot tell), text, numbers
    foreign: int  # messages that came to roles of the agent and were nobody's
    totals: dict[str, int]  # messages, as the roles of the agent counted them
    clocks: dict[str, Any]
    hosts: dict[str, Any]
    underlay: list[dict[str, Any]]
    starts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Warned:
    """Something the reader of a result has to know; `suspect`: it puts the result in doubt."""

    code: str
    text: str
    remedy: str
    suspect: bool = False


def read(run_dir: Path) -> Contents:
    """All that it says; empty where there is none yet."""
    path = run_dir / NAME
    found: Contents = json.loads(path.read_text()) if path.exists() else {}
    return found


def write(run_dir: Path, data: Contents) -> Contents:
    """The manifest as a whole, with the one judgement of all that it holds; as it is written."""
    whole: Contents = {**data, "suspect": doubtful(data)}
    copy(run_dir, json.dumps(whole, indent=1) + "\n")
    return whole


def copy(run_dir: Path, text: str) -> None:
    """A manifest that another machine has written; a reader sees the old or the new one, never a part."""
    path = run_dir / NAME
    if not (run_dir / "seal.json").exists():
        regular.write(path, text)
        return
    from capture import seal  # of a run that was reduced, so not inside the lab's kernel

    seal.lift(run_dir, NAME)
    regular.write(path, text)
    seal.renew(run_dir, [NAME])


def doubtful(data: Contents) -> bool:
    """Whether to look before trusting the run: it has not come to its end, or a warning says so."""
    return data.get("state") != COMPLETE or any(w.get("suspect") for w in data.get("warnings", ()))


def ended(run_dir: Path, state: str, error: str | None, by: str | None = None) -> Contents:
    """What a lab process could not write of its own end; by: who ended it, where that is known."""
    known: Contents = {"lab": run_dir.parent.name, "run": run_dir.name, **read(run_dir)}
    known |= {"state": state, "error": error}
    if by:
        known["ended_by"] = by
    return write(run_dir, known)


def outside(run_dir: Path, why: str, machine: dict[str, Any], inputs: dict[str, str]) -> None:
    """What only the outside of a run in virtual time knows: why this kernel, on what, made of what."""
    known = read(run_dir)
    kernel: Kernel = {**known.get("kernel", {}), "why": why}
    write(run_dir, known | {"kernel": kernel, "run": run_dir.name, "machine": machine, "inputs": inputs})


def hashed(run_dir: Path, hashes: dict[str, str]) -> None:
    """SHA-256 of all that the same inputs must give again."""
    write(run_dir, read(run_dir) | {"hashes": hashes})


def reduced(run_dir: Path, warnings: Iterable[Warned], checks: Iterable[dict[str, Any]] = ()) -> None:
    """Warnings and checks of a reduction in place of those of an earlier one; nothing where there is no
    manifest.
    """
    known = read(run_dir)
    if known:
        made: Contents = {**known, "checks": list(checks)}
        _replace(run_dir, made, (REDUCTION, TRUST, CHECK), warnings)


def checked(run_dir: Path, warnings: Iterable[Warned], checks: Iterable[dict[str, Any]]) -> bool:
    """The same of checks of summary.json, beside those of the reduction; whether that changed anything."""
    known = read(run_dir)
    if not known:
        return False
    new = list(checks)
    names = {check["name"] for check in new}
    before = [check for check in known.get("checks", []) if check["name"] not in names]
    return _replace(run_dir, {**known, "checks": before + new}, (CHECK,), warnings)


def _replace(run_dir: Path, known: Contents, codes: tuple[str, ...], warnings: Iterable[Warned]) -> bool:
    """Warnings whose codes begin so give way to these; an unchanged file keeps its time."""
    kept = [w for w in known.get("warnings", []) if not w["code"].startswith(codes)]
    new = [asdict(warning) for warning in warnings]
    fresh: Contents = {**known, "warnings": kept + [warning for warning in new if warning not in kept]}
    if fresh | {"suspect": doubtful(fresh)} == read(run_dir):
        return False
    write(run_dir, fresh)
    return True
