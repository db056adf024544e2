"""Implements `vnet verify`, which repeats a run in virtual time, checks the seal of one in real time, or
checks the files and verdicts of a crate.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.errors import DONE, FAILED, CliError
from orchestrator.cli.output import json_option, note, print_json, say

if TYPE_CHECKING:
    from orchestrator.verify.verify import Comparison

SHORT = 12  # number of digits of a hash that are shown
HASH = 64  # digits of SHA-256


@click.command("verify")
@click.argument("directory", type=click.Path(path_type=Path))
@json_option
def verify_command(directory: Path, as_json: bool) -> int:
    """Repeat the run in DIRECTORY in virtual time, and compare every byte that must be equal.

    DIRECTORY may be a crate (`vnet crate`): then the hash of each of its files is checked, and its runs are
    judged again.

    Exit status 1 if something differs; the first packet, message or row that differs is shown. A run in real
    time cannot repeat; only its seal is checked, which shows whether a file was changed.

    \b
    Example:  vnet verify results/pair/20260131T120000
    """
    from contract.rundir import read_plan
    from orchestrator.cli.progress import planned
    from orchestrator.cli.views import view
    from orchestrator.verify.verify import VerifyError, recorded, verify

    if directory.suffix == ".zip":
        return _of_crate(directory, as_json)
    try:
        if not repeats(directory):
            return _of_seal(directory, as_json)
        recorded(directory)
        plan = read_plan(directory)
        with view(planned(plan, "virtual", "reduce"), transient=True) as shown:
            verdict = verify(directory.resolve(), shown, _inputs)
    except VerifyError as error:
        raise CliError(str(error)) from error
    if as_json:
        print_json(as_data(directory, verdict))
    else:
        _say(directory, verdict)
    return DONE if verdict.identical and not verdict.changed else FAILED


def _inputs(other: dict[str, tuple[str, str]]) -> None:
    for name, (then, now) in other.items():
        note(f"inputs differ: {name} was {_short(then)}, is {_short(now)}; that may change the run")


def _short(value: str) -> str:
    """Returns the first SHORT digits of a SHA-256, and any other value (a version) unchanged."""
    return value[:SHORT] if len(value) == HASH and value.isalnum() else value


def _say(directory: Path, verdict: Comparison) -> None:
    for name in verdict.changed:
        note(f"{directory / name}: was changed after the run (the manifest has another hash)")
    if verdict.state != "complete":
        say(f"the repeated run is {verdict.state}: {verdict.error}")
    if verdict.identical:
        say(f"identical: {verdict.files} files, byte for byte")
        return
    say(f"different: {len(verdict.differing)} of {verdict.files} files: {', '.join(verdict.differing[:8])}")
    if verdict.first is not None:
        first = verdict.first
        say(f"first difference: {first.file}, {first.where}\n  was   {first.before}\n  again {first.again}")


def as_data(directory: Path, verdict: Comparison) -> dict[str, Any]:
    """Returns the result of the comparison as JSON data for `--json`."""
    from dataclasses import asdict

    return {"run_dir": str(directory), **asdict(verdict)}


def repeats(directory: Path) -> bool:
    """Returns whether the run was in virtual time; also True without a manifest, which `recorded` then
    refuses.
    """
    from contract import manifest

    return manifest.load(directory).time in ("", "virtual")


def _of_crate(crate: Path, as_json: bool) -> int:
    """Checks a crate and prints the result; returns DONE if all files and verdicts are as the crate states,
    else FAILED.
    """
    from dataclasses import asdict

    from reports.crate.pack import CrateError, check
    from reports.rundir import RunDirectoryError

    try:
        found = check(crate)
    except (CrateError, RunDirectoryError) as error:
        raise CliError(str(error)) from error
    if as_json:
        print_json({"crate": str(crate), **asdict(found)})
    for text in found.differing:
        note(f"{crate}: {text}")
    if found.intact and not as_json:
        say(f"intact: {found.files} files, and {found.verdicts} verdicts judged again: all are as stated")
    return DONE if found.intact else FAILED


def _of_seal(directory: Path, as_json: bool) -> int:
    """Checks only the seal of a run in real time and prints the result; returns DONE if there is a seal and
    all files match it, else FAILED.
    """
    from contract import seal

    there = seal.sealed(directory)
    changed = [*dict.fromkeys([*seal.altered(directory), *seal.altered_records(directory)])]
    if as_json:
        print_json({"run_dir": str(directory), "time": "real", "sealed": there, "changed": changed})
    for name in changed:
        note(f"{directory / name}: was changed after the run")
    if not there:
        remedy = "`vnet report --reduce` seals the present files"
        note(f"{directory}: a run in real time cannot repeat, and this one has no seal; {remedy}")
    if there and not changed and not as_json:
        say("a run in real time cannot repeat; its seal is intact: no file was changed")
    return DONE if there and not changed else FAILED
