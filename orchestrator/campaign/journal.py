"""Reads and writes a campaign's directory: campaign.json, cells.jsonl, and notes on running cells.

Every write is synced to disk before the next cell begins, so kill -9 or a power cut loses only the running
cells.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contract import findings, manifest

Json = dict[str, Any]
COMPLETE = ("complete",)
FINISHED = ("complete", "failed")  # a cell in another state is run again
# Files that may exist before campaign.json does: of a start that was killed, and of `vnet serve`.
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
    with (directory / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CampaignError(
                f"{directory}: another process runs this campaign; wait, or give another --out"
            ) from None
        yield


def insist_it_is_free(directory: Path) -> None:
    """Raises CampaignError if the directory contains other files than those of BEFORE_IT."""
    others = sorted(path.name for path in directory.iterdir() if path.name not in BEFORE_IT)
    if others:
        raise CampaignError(
            f"{directory}: holds {others[0]} and no campaign; --out names the directory of this campaign; "
            f"name a new one, or write --results {directory} for campaigns below it"
        )


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replaces `path` atomically by the value as JSON, and syncs file and directory to disk."""
    fresh = path.with_name(path.name + ".new")
    with fresh.open("w") as file:
        file.write(json.dumps(value, indent=2) + "\n")
        file.flush()
        _sync(file.fileno())
    fresh.replace(path)
    _sync_directory(path.parent)


def read_json(path: Path) -> Json:
    """Reads a file that `write_json` wrote; raises CampaignError if it cannot be read or is no JSON."""
    try:
        value: Json = json.loads(path.read_text())
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
    """Appends a line to cells.jsonl and syncs it; first ends a last line that kill -9 has truncated."""
    path = directory / "cells.jsonl"
    torn = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    with path.open("a") as file:
        file.write(("\n" if torn else "") + json.dumps(line) + "\n")
        file.flush()
        _sync(file.fileno())
    _sync_directory(directory)


def lines(directory: Path) -> list[Json]:
    """Returns all lines of cells.jsonl in order, without truncated ones; empty if there is no such file."""
    path = directory / "cells.jsonl"
    return (
        [parsed for text in path.read_text().splitlines() if (parsed := _whole(text))]
        if path.exists()
        else []
    )


def _whole(text: str) -> Json | None:
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError:
        return None  # truncated by kill -9; its cell counts as running
    return parsed if isinstance(parsed, dict) else None


def latest(directory: Path) -> dict[str, Json]:
    """Returns the name of each cell in the journal -> its last line."""
    return {str(line["cell"]): line for line in lines(directory)}


def in_flight(directory: Path) -> list[Json]:
    """Returns the notes {cell, run_dir, lab, ...} of cells that have begun and not ended.

    A killed campaign leaves such notes.
    """
    return [read_json(path) for path in sorted(directory.glob("running*.json"))]


def begin(directory: Path, line: Mapping[str, Any]) -> None:
    """Writes the note that a cell is running; `slot` in the line distinguishes parallel cells."""
    write_json(_note(directory, line), line)


def end(directory: Path, line: Mapping[str, Any]) -> str | None:
    """Syncs the cell's files to disk, appends its end to the journal, and removes its note as running.

    Returns why its run is suspect, and adds this to the line; None if it is not suspect.
    """
    _sync_file_system(directory)
    why = suspect(directory, line)
    append(directory, {name: value for name, value in line.items() if name != "slot"} | {"suspect": why})
    forget(directory, line)
    return why


def suspect(directory: Path, line: Mapping[str, Any]) -> str | None:
    """Returns why the run of an ended cell is suspect; None if it is not.

    Takes the reason from the line, or from the run's manifest if the line has none yet.
    """
    if "suspect" in line:
        return None if line["suspect"] is None else str(line["suspect"])
    try:
        found = manifest.read(directory / str(line.get("run_dir", "")))
        return findings.why(manifest.Manifest.of(findings.known(found, ())))
    except (OSError, ValueError) as error:
        return f"{manifest.NAME} cannot be read: {error}"


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


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
