"""Repeats a run in virtual time from the plan in its directory, and compares all files that must be equal."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract import regular, rundir, seal
from contract.manifest import COMPLETE, Manifest, written
from contract.plan import Plan
from contract.seal import digest
from orchestrator.kernel.protocol import NoKernel
from orchestrator.kernel.uml.binaries import UmlBinary, find_binaries
from orchestrator.kernel.virtual.kernel import VirtualKernel, is_ours
from orchestrator.project import BUILD_KERNEL
from orchestrator.run.identity import identical_set, inputs_of
from orchestrator.run.prepare import Prepared, Request
from orchestrator.run.run import execute
from orchestrator.verify.difference import Difference, first_difference

# Files in the order of comparison: a difference in a capture explains differences in everything made from it.
ORDER = (
    "pcap/",
    "raw/",
    "messages",
    "sessions",
    "transfers",
    "events",
    "nodes",
    "links",
    "packets/",
    "connections/",
    "proof",
    "summary",
    "report/",
)


Inputs = dict[str, tuple[str, str]]  # name -> (then, now)


class VerifyError(Exception):
    """Raised if a run cannot be verified; the text gives the reason and a remedy."""


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison. `files`: number of recorded files; `changed`: files altered since the run;
    `differing`: files that differ from the new run.
    """

    identical: bool
    files: int
    changed: tuple[str, ...]
    differing: tuple[str, ...]
    first: Difference | None
    inputs: Inputs
    state: str
    error: str | None


def verify(
    run_dir: Path,
    observe: Callable[[dict[str, Any]], None],
    told: Callable[[Inputs], None],
) -> Comparison:
    """Runs the plan again in a temporary directory beside `run_dir` and compares; first passes the inputs
    that differ to `told`. Removes the new run afterwards. Raises VerifyError if `run_dir` is not a finished
    run in virtual time; a failing run raises the errors of `execute`.
    """
    manifest = recorded(run_dir)
    prepared = again(run_dir, manifest)
    other = differing_inputs(manifest, inputs_of(prepared))
    told(other)
    page = any(name.startswith("report/") for name in manifest.hashes)
    with tempfile.TemporaryDirectory(prefix=".verify-", dir=run_dir.parent) as place:
        fresh = Path(place) / run_dir.name
        fresh.mkdir()
        outcome = execute(prepared, fresh, observe, page=page)
        return compare(run_dir, manifest, fresh, other, outcome.state, outcome.error)


def compare(
    run_dir: Path,
    manifest: Manifest,
    fresh: Path,
    other: Inputs,
    state: str = "complete",
    error: str | None = None,
) -> Comparison:
    """Compares the recorded run in `run_dir` with the new one in `fresh`, by the SHA-256 of the files that
    equal inputs must reproduce; also finds files of `run_dir` that were changed after the run.
    """
    then, now = manifest.hashes, identical_set(fresh)
    here = {name: digest(run_dir / name) for name in then if (run_dir / name).exists()}
    touched = [*seal.altered(run_dir), *seal.altered_records(run_dir)]
    changed = sorted({*touched, *(name for name in then if here.get(name) != then[name])})
    differing = sorted(
        (name for name in then.keys() | now.keys() if here.get(name) != now.get(name)), key=_order
    )
    first = (
        first_difference(differing[0], run_dir / differing[0], fresh / differing[0]) if differing else None
    )
    return Comparison(not differing, len(then), tuple(changed), tuple(differing), first, other, state, error)


def recorded(run_dir: Path) -> Manifest:
    """Returns the manifest of a complete run in virtual time; VerifyError for anything else, and for a
    directory with other entries than regular files and directories.
    """
    if run_dir.is_dir() and (other := regular.other_entry(run_dir)):
        raise VerifyError(f"{run_dir}: {other}; a run has regular files and directories only; remove it")
    try:
        manifest = written(run_dir)
    except (OSError, ValueError) as error:
        raise VerifyError(
            f"{run_dir}: no readable manifest.json ({error}); give the directory of a run"
        ) from error
    if not manifest.virtual:
        raise VerifyError(
            f"{run_dir}: a run in real time does not repeat; `vnet run --time virtual` makes one that does"
        )
    if manifest.state != COMPLETE or not manifest.hashes:
        raise VerifyError(f"{run_dir}: the run is {manifest.state}: only a complete one can be run again")
    return manifest


def again(run_dir: Path, manifest: Manifest, plan: Plan | None = None) -> Prepared:
    """Prepares the run's plan, or `plan`, with the same system call cost. Uses the identical kernel if this
    machine has it, else the first one found. Raises NoKernel if no kernel is built, or this one cannot run
    the plan.
    """
    plan = plan or rundir.read_plan(run_dir)
    kernel = VirtualKernel([_kernel(manifest)], int(manifest.kernel["syscall_ns"]))
    if missing := kernel.can(plan):
        raise NoKernel("\n".join(str(one) for one in missing))
    request = Request(run_dir / "topology.yaml", {}, time="virtual", state=f"{plan.lab}-verify")
    return Prepared.of(request, plan, kernel, str(manifest.kernel.get("why", "")))


def _kernel(manifest: Manifest) -> UmlBinary:
    found = [binary for binary in find_binaries() if is_ours(binary.path)]
    if not found:
        raise NoKernel(f"virtual time: the lab's own kernel is not built; {BUILD_KERNEL} builds it (no root)")
    wanted = manifest.inputs.get("kernel")
    return next((binary for binary in found if digest(binary.path) == wanted), found[0])


def differing_inputs(manifest: Manifest, now: dict[str, str]) -> Inputs:
    """Returns for every input that has changed, by name, its values (then, now); "absent" for a
    missing one.
    """
    then = manifest.inputs
    names = sorted(then.keys() | now.keys())
    return {n: (then.get(n, "absent"), now.get(n, "absent")) for n in names if then.get(n) != now.get(n)}


def _order(name: str) -> tuple[int, str]:
    rank = next((i for i, start in enumerate(ORDER) if name.startswith(start)), len(ORDER))
    return rank, name
