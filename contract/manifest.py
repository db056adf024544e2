"""Defines the content of a run's manifest.json, and reads, changes and writes this file. All other code uses
this module.

It imports the standard library only: the lab process writes the file inside the lab's kernel, where every
import costs time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypedDict

from contract import regular

NAME = "manifest.json"
COMPLETE = "complete"  # a run with any other state is doubtful
# Codes of the warnings that a reduction adds; a new reduction removes them first.
REDUCTION, TRUST = "reduce-", "trust-"
INAPPLICABLE: Literal["does not apply"] = "does not apply"  # in place of a check's verdict
CHECK = "check-"  # prefix of the findings about summary.json that a report adds
ALTERED = "altered"  # code of a file changed before reduction; no later reduction removes it


Time = Literal["real", "virtual"]


class Kernel(TypedDict, total=False):
    """The lab's kernel; `start_ns` and `syscall_ns` only in virtual time."""

    kind: str
    release: str
    why: str
    machine: str  # URL of the machine, if the lab ran on another one
    time: Time
    start_ns: int
    syscall_ns: int


Contents = dict[str, Any]  # content of the file, also of one that another version wrote


@dataclass(kw_only=True)
class Manifest:
    """The content of a manifest: the lab process fills it in and writes `contents`; others load it.

    A field is empty if it is absent from the file, or of another type there.
    """

    lab: str = ""
    run: str = ""
    driver: str = ""
    topology: str = ""
    reference: str | None = None
    scenario: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    kernel: Kernel = field(default_factory=lambda: Kernel())
    time: str = ""  # real, virtual
    host: dict[str, Any] = field(default_factory=dict)
    state: str = ""  # running, complete, interrupted, failed
    error: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    t0_ns: int | None = None
    phases: dict[str, list[int]] = field(default_factory=dict)  # [start, end], ns
    nodes: dict[str, str] = field(default_factory=dict)  # end states
    captures: dict[str, dict[str, Any]] = field(default_factory=dict)
    limits: dict[str, dict[str, Any]] = field(default_factory=dict)
    deadlines_missed: list[dict[str, Any]] = field(default_factory=list)
    foreign: int | None = None  # messages that came to roles of the agent and belonged to no flow
    totals: dict[str, int] | None = None  # messages, as the roles of the agent counted them
    clocks: dict[str, Any] = field(default_factory=dict)
    hosts: dict[str, Any] = field(default_factory=dict)
    underlay: list[dict[str, Any]] = field(default_factory=list)
    starts: dict[str, Any] = field(default_factory=dict)
    warnings: list[dict[str, Any]] = field(default_factory=list)  # fields of Warned
    suspect: bool = False
    ended_by: str = ""
    machine: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    checks: list[dict[str, Any]] = field(default_factory=list)  # name, verdict, text, numbers
    inapplicable: list[dict[str, Any]] = field(default_factory=list)  # checks without a subject: name, text
    monitors: list[dict[str, Any]] = field(default_factory=list)  # name, state, value, threshold, unit, text
    control: dict[str, Any] = field(default_factory=dict)  # a control run, and its median latencies by class
    sealed: bool = False  # a reduction sealed the run: from then on it has to have its seal

    @classmethod
    def of(cls, found: object) -> Manifest:
        """Returns the manifest with the content `found` of the file. Fields of a wrong type, and all fields
        if `found` is no object, keep their defaults.
        """
        known = found if isinstance(found, dict) else {}
        kinds = ((one.name, KINDS[one.type.partition("[")[0].split()[0]]) for one in fields(cls))
        return cls(**{name: known[name] for name, kind in kinds if isinstance(known.get(name), kind)})

    @property
    def virtual(self) -> bool:
        """True if the run was in virtual time."""
        return self.time == "virtual"

    def contents(self, warnings: list[dict[str, Any]]) -> Contents:
        """Returns the content of the file with `warnings` in place of the manifest's own. Leaves out
        `foreign` and all fields after it that have their default, among them mostly `suspect`.
        """
        empty, names = Manifest(), [one.name for one in fields(Manifest)]
        left_out = {
            name for name in names[names.index("foreign") :] if getattr(self, name) == getattr(empty, name)
        }
        return {name: getattr(self, name) for name in names if name not in left_out} | {"warnings": warnings}


ENDED = (COMPLETE, "interrupted", "failed")
KINDS = {"str": str, "int": int, "bool": bool, "dict": dict, "list": list, "Kernel": dict}


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning for the reader of a result; `suspect`: it questions the result."""

    code: str
    text: str
    remedy: str
    suspect: bool = False


def read(run_dir: Path) -> Contents:
    """Returns the content of manifest.json; an empty object without the file. ValueError if it is no JSON."""
    path = run_dir / NAME
    found: Contents = regular.read_json(path) if path.exists() else {}
    return found


def load(run_dir: Path) -> Manifest:
    """Returns the manifest of a run; an empty one without the file. ValueError if it is no JSON."""
    return Manifest.of(read(run_dir))


def written(run_dir: Path) -> Manifest:
    """Returns the manifest of a run that has one; OSError without the file, ValueError if it is no JSON
    object.
    """
    return parse(regular.read_text(run_dir / NAME))


def parse(text: str) -> Manifest:
    """Returns the manifest with this text; ValueError if it is no JSON object."""
    found = regular.parsed(text)
    if not isinstance(found, dict):
        raise ValueError(f"{NAME} is no object")
    return Manifest.of(found)


def write(run_dir: Path, data: Contents) -> Contents:
    """Writes `data` as the whole manifest, with `suspect` computed from it, and returns the content as
    written. Renews the run's seal if there is one.
    """
    whole: Contents = {**data, "suspect": doubtful(data)}
    copy(run_dir, json.dumps(whole, indent=1) + "\n")
    return whole


def copy(run_dir: Path, text: str) -> None:
    """Writes the text of a manifest atomically and unchanged, and renews its digest in the run's seal if
    there is one.
    """
    path = run_dir / NAME
    if not (run_dir / "seal.json").exists():
        regular.write(path, text)
        return
    from contract import seal  # imported here, since the lab's kernel never seals a run

    seal.lift(run_dir, NAME)
    regular.write(path, text, durable=True)  # no other file holds this content
    seal.renew(run_dir, [NAME])


def doubtful(data: Contents) -> bool:
    """Returns True if the run is suspect: its state is not "complete", or a warning makes it suspect."""
    return data.get("state") != COMPLETE or any(w.get("suspect") for w in data.get("warnings", ()))


def ended(run_dir: Path, state: str, error: str | None, by: str | None = None) -> Manifest:
    """Writes state and error of a run whose lab process could not write its end, and returns the manifest.

    by: the cause of the end; None leaves `ended_by` as it is. Without a manifest it writes a new one.
    """
    known: Contents = {"lab": run_dir.parent.name, "run": run_dir.name, **read(run_dir)}
    known |= {"state": state, "error": error}
    if by:
        known["ended_by"] = by
    return Manifest.of(write(run_dir, known))


def outside(run_dir: Path, why: str, machine: dict[str, Any], inputs: dict[str, str]) -> None:
    """Adds to the manifest values that a run in virtual time cannot see: the reason for its kernel, the name
    of its run directory, the machine and the inputs.
    """
    known = read(run_dir)
    kernel = {**known.get("kernel", {}), "why": why}
    write(run_dir, known | {"kernel": kernel, "run": run_dir.name, "machine": machine, "inputs": inputs})


def controlled(run_dir: Path, control: dict[str, Any]) -> None:
    """Sets `control` in the manifest: a control run and its median latencies by class."""
    write(run_dir, read(run_dir) | {"control": control})


def hashed(run_dir: Path, hashes: dict[str, str]) -> None:
    """Sets `hashes` in the manifest: the SHA-256 of each file that equal inputs must reproduce."""
    write(run_dir, read(run_dir) | {"hashes": hashes})


def reduced(
    run_dir: Path,
    warnings: Iterable[Warned],
    checks: Iterable[dict[str, Any]] = (),
    monitors: Iterable[dict[str, Any]] = (),
) -> None:
    """Replaces the checks and monitors of the manifest, and the warnings of earlier reductions and checks, by
    the given ones, and marks the run as sealed. Does nothing without a manifest.
    """
    known = read(run_dir)
    if known:
        made = _parted(known, list(checks)) | {"monitors": list(monitors), "sealed": True}
        _replace(run_dir, made, (REDUCTION, TRUST, CHECK), warnings)


def checked(run_dir: Path, warnings: Iterable[Warned], checks: Iterable[dict[str, Any]]) -> bool:
    """Replaces the warnings whose code begins with "check-", and the checks of the same names, by those of
    summary.json. Returns True if that changed the manifest; False without a manifest.
    """
    known = read(run_dir)
    if not known:
        return False
    new = list(checks)
    names = {check["name"] for check in new}
    before = [
        check
        for key in ("checks", "inapplicable")
        for check in known.get(key, [])
        if check["name"] not in names
    ]
    return _replace(run_dir, _parted(known, before + new), (CHECK,), warnings)


def _parted(known: Contents, checks: list[dict[str, Any]]) -> Contents:
    """Returns the manifest with its checks in two parts: `checks`, which have a verdict, and `inapplicable`,
    which have none because the run has no subject for them. Leaves out `inapplicable` if it is empty.
    """
    absent = [one for one in checks if one.get("verdict", INAPPLICABLE) == INAPPLICABLE]
    made: Contents = {**known, "checks": [one for one in checks if one not in absent]}
    made.pop("inapplicable", None)
    named = [{"name": one["name"], "text": one["text"]} for one in absent]
    return made | ({"inapplicable": named} if named else {})


def _replace(run_dir: Path, known: Contents, codes: tuple[str, ...], warnings: Iterable[Warned]) -> bool:
    """Writes `known` with `warnings` in place of its warnings whose code begins with one of `codes`. Returns
    False, and does not write, if the file would not change.
    """
    kept = [w for w in known.get("warnings", []) if not w["code"].startswith(codes)]
    new = [asdict(warning) for warning in warnings]
    fresh: Contents = {**known, "warnings": kept + [warning for warning in new if warning not in kept]}
    if fresh | {"suspect": doubtful(fresh)} == read(run_dir):
        return False
    write(run_dir, fresh)
    return True
