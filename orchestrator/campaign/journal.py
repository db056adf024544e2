"""Reads and writes the files of a campaign's directory: campaign.json, cells.jsonl, and notes on running
cells. Every write is synced to disk before the next cell begins, so kill -9 or a power cut loses only the
running cells.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contract import findings, manifest, regular
from contract.cells import is_below

Json = dict[str, Any]
COMPLETE = ("complete",)
FINISHED = ("complete", "failed")  # a cell in another state is run again
# Files that may exist before campaign.json does: those of a start that was killed, and those of `vnet serve`.
BEFORE_IT = ("lock", "campaign.json.new", "page.json", "page.json.new", "page.log")


class CampaignError(Exception):
    """A campaign directory cannot be used as requested; the text is place, value, rule, remedy."""


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Makes the directory and locks it for this process while the context lasts.

    Raises CampaignError if another process holds the lock, or if the directory cannot be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CampaignError(
            f"{directory}: cannot be written ({error.strerror}); choose another place with --out"
        ) from error
    with regular.open_lock(directory / "lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CampaignError(
                f"{directory}: another process runs this campaign; wait, or give another --out"
            ) from None
        yield


def insist_it_is_free(directory: Path) -> None:
    """Raises CampaignError if the directory contains any file but those that a process writes before
    campaign.json (BEFORE_IT).
    """
    others = sorted(path.name for path in directory.iterdir() if path.name not in BEFORE_IT)
    if others:
        raise CampaignError(
            f"{directory}: holds {others[0]} and no campaign; --out names the directory of this campaign; "
            f"name a new one, or write --results {directory} for campaigns below it"
        )


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replaces `path` atomically by the value as JSON, and syncs file and directory to disk. Writes NAME.new
    first.
    """
    fresh = path.with_name(path.name + ".new")
    with regular.named(path):
        with fresh.open("w") as file:
            file.write(json.dumps(value, indent=2) + "\n")
            file.flush()
            _sync(file.fileno())
        fresh.replace(path)
        sync_directory(path.parent)


def read_json(path: Path) -> Json:
    """Reads a file that `write_json` wrote; raises CampaignError if it cannot be read or is no JSON."""
    try:
        value: Json = regular.read_json(path)
    except OSError as error:
        raise CampaignError(
            f"{path}: {error.strerror}; `vnet campaign run FILE` makes a campaign directory"
        ) from None
    except ValueError as error:
        raise CampaignError(
            f"{path}: is damaged ({error}); remove the directory or correct the file"
        ) from None
    return value


def append(directory: Path, line: Mapping[str, Any]) -> None:
    """Appends a line to cells.jsonl and syncs it; first ends the last line, if kill -9 has truncated it."""
    path = directory / "cells.jsonl"
    torn = path.exists() and not regular.read_bytes(path).endswith(b"\n") and path.stat().st_size > 0
    with regular.named(path):
        with path.open("a") as file:
            file.write(("\n" if torn else "") + json.dumps(line) + "\n")
            file.flush()
            _sync(file.fileno())
        sync_directory(directory)


def read_campaign(directory: Path) -> Json:
    """Reads campaign.json; raises the errors of `read_json`, and CampaignError if it does not list cells by
    name.
    """
    path = directory / "campaign.json"
    value, remedy = read_json(path), "undo the change, or begin anew with another --out"
    if not isinstance(value, dict) or not isinstance(value.get("cells"), list):
        raise CampaignError(f"{path}: was changed: cells: is no list; {remedy}")
    if not isinstance(value.get("files", {}), dict):
        raise CampaignError(f"{path}: was changed: files: is no mapping; {remedy}")
    for number, cell in enumerate(value["cells"]):
        insist(f"{path}: cells[{number}]", cell, ("cell",), remedy)
    return value


def lines(directory: Path) -> list[Json]:
    """Returns all lines of cells.jsonl in order, without truncated ones; empty if there is no such file.

    A truncated line (kill -9) is not JSON, and its cell counts as running. Raises CampaignError for a line
    that was changed.
    """
    path = directory / "cells.jsonl"
    found = []
    remedy = "undo the change, or remove the line: then its cell is run again"
    for number, text in enumerate(regular.read_bytes(path).splitlines() if path.exists() else (), 1):
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            continue
        found.append(insist(f"{path}:{number}", parsed, ("cell",), remedy))
    return found


def latest(directory: Path) -> dict[str, Json]:
    """Returns for each cell in the journal, by name, its last line. Raises the errors of `lines`."""
    return {str(line["cell"]): line for line in lines(directory)}


def in_flight(directory: Path) -> list[Json]:
    """Returns the notes {cell, run_dir, lab, ...} of cells that have begun and not ended.

    A killed campaign leaves such notes. Raises CampaignError for one that was changed.
    """
    remedy = "end its lab (`vnet ls`) and remove this file: then its cell is run again"
    return [
        insist(str(path), read_json(path), ("cell", "run_dir"), remedy)
        for path in sorted(directory.glob("running*.json"))
    ]


def insist(place: str, value: Any, needed: tuple[str, ...], remedy: str) -> Json:
    """Returns a line of the journal, a note or a planned cell. Raises CampaignError, whose text begins with
    `place`, if it lacks a field of `needed` or if a field does not have the form that this program writes.
    """
    if not isinstance(value, dict):
        raise CampaignError(f"{place}: was changed: {_shown(value)} is no mapping; {remedy}")
    if missing := [name for name in needed if name not in value]:
        raise CampaignError(f"{place}: was changed: has no {missing[0]}; {remedy}")
    for name, (form, rule) in FORMS.items():
        if name in value and not form(value[name]):
            raise CampaignError(f"{place}: was changed: {name}: {_shown(value[name])} {rule}; {remedy}")
    return value


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and NAME.fullmatch(value) is not None


def _is_cell(value: Any) -> bool:
    return isinstance(value, str) and value not in ("", ".", "..") and not set(value) & set("/\0")


def _is_seconds(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (number and 0 <= value < math.inf)


def _shown(value: Any) -> str:
    return json.dumps(value)[:80]


# Names that become parts of paths. A cell's name has the levels of its factors, any text without a slash.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
FORMS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "cell": (_is_cell, "is no name of a cell"),
    "lab": (_is_name, "is no name of a lab"),
    "slot": (_is_name, "is no number of a cell"),
    "state": (lambda value: isinstance(value, str), "is no text"),
    "run_dir": (is_below, "is no path below the campaign's directory"),
    "wall_s": (_is_seconds, "is no time in seconds"),
}


def begin(directory: Path, line: Mapping[str, Any]) -> None:
    """Writes the note that a cell is running (running.json); `slot` in the line is a part of its name, so
    that parallel cells have notes of their own.
    """
    write_json(_note(directory, line), line)


def end(directory: Path, line: Mapping[str, Any]) -> str | None:
    """Syncs the cell's files to disk, appends the cell's end to the journal, and removes the note that it is
    running. Returns the reason why its run is suspect, or None, and adds it to the line as `suspect`. For a
    suspect run also adds `disturbed`: the machine's disturbances that made it suspect.
    """
    _sync_file_system(directory)
    why = suspect(directory, line)
    marks = {"suspect": why} if why is None else {"suspect": why, "disturbed": disturbed(directory, line)}
    append(directory, {name: value for name, value in line.items() if name != "slot"} | marks)
    forget(directory, line)
    return why


def suspect(directory: Path, line: Mapping[str, Any]) -> str | None:
    """Returns the reason why the run of an ended cell is suspect; None if it is not suspect. Takes the reason
    from the line, or from the run's manifest if the line has none yet; an unreadable manifest is also a
    reason.
    """
    if "suspect" in line:
        return None if line["suspect"] is None else str(line["suspect"])
    try:
        return findings.why(_manifest(directory, line))
    except (OSError, ValueError) as error:
        return f"{manifest.NAME} cannot be read: {error}"


def disturbed(directory: Path, line: Mapping[str, Any]) -> str | None:
    """Returns the disturbances by the machine that made the run of an ended cell suspect. None if it is not
    suspect, if it is suspect only for other reasons, or if its manifest cannot be read. Takes them from the
    line, or from the run's manifest if the line has none yet.
    """
    if "disturbed" in line:
        return None if line["disturbed"] is None else str(line["disturbed"])
    try:
        return findings.disturbed(_manifest(directory, line))
    except (OSError, ValueError):
        return None


def _manifest(directory: Path, line: Mapping[str, Any]) -> manifest.Manifest:
    found = manifest.read(directory / str(line.get("run_dir", "")))
    return manifest.Manifest.of(findings.known(found, ()))


def forget(directory: Path, line: Mapping[str, Any]) -> None:
    """Removes the note that a cell is running, if it exists."""
    _note(directory, line).unlink(missing_ok=True)


def _note(directory: Path, line: Mapping[str, Any]) -> Path:
    slot = line.get("slot")
    return directory / (f"running-{slot}.json" if slot else "running.json")


def _sync(descriptor: int) -> None:
    os.fsync(descriptor)


def _sync_file_system(path: Path) -> None:
    """Syncs the whole file system of `path` by syncfs(2): one call instead of one fsync for each file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Returns once the entries of a directory are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
