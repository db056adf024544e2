"""Reads and writes a campaign's directory: its settings, the state of each cell, and the cells in flight.

Every write is synced before the next cell begins: kill -9 or a power cut loses at most the cells in flight.
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
# Files that may be there before campaign.json is: what a killed beginning left, what `vnet serve` notes.
BEFORE_IT = ("lock", "campaign.json.new", "page.json", "page.json.new", "page.log")


class CampaignError(Exception):
    """A campaign directory that cannot be used as asked; the text is place, value, rule, remedy."""


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory for this process; CampaignError if another one runs the same campaign."""
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
    """Raises CampaignError if a directory without a campaign contains anything else."""
    others = sorted(path.name for path in directory.iterdir() if path.name not in BEFORE_IT)
    if others:
        raise CampaignError(
            f"{directory}: holds {others[0]} and no campaign; --out names the directory of this campaign; "
            f"name a new one, or write --results {directory} for campaigns below it"
        )


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replaces `path` atomically, and syncs it to disk."""
    fresh = path.with_name(path.name + ".new")
    with fresh.open("w") as file:
        file.write(json.dumps(value, indent=2) + "\n")
        file.flush()
        _sync(file.fileno())
    fresh.replace(path)
    _sync_directory(path.parent)


def read_json(path: Path) -> Json:
    """A file that `write_json` wrote; CampaignError if there is none or it is damaged."""
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
    """Appends the end of a cell; first ends a last line that kill -9 has cut."""
    path = directory / "cells.jsonl"
    torn = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    with path.open("a") as file:
        file.write(("\n" if torn else "") + json.dumps(line) + "\n")
        file.flush()
        _sync(file.fileno())
    _sync_directory(directory)


def lines(directory: Path) -> list[Json]:
    """All whole lines of cells.jsonl, in order."""
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
        return None  # torn by kill -9; its cell counts as in flight
    return parsed if isinstance(parsed, dict) else None


def latest(directory: Path) -> dict[str, Json]:
    """The last line of every cell, by its name."""
    return {str(line["cell"]): line for line in lines(directory)}


def in_flight(directory: Path) -> list[Json]:
    """Cells that have begun and not ended, which a killed campaign leaves: {cell, run_dir, lab, ...}."""
    return [read_json(path) for path in sorted(directory.glob("running*.json"))]


def begin(directory: Path, line: Mapping[str, Any]) -> None:
    """Note a cell in flight; `slot` in the line distinguishes several at once."""
    write_json(_note(directory, line), line)


def end(directory: Path, line: Mapping[str, Any]) -> str | None:
    """Notes the end of a cell in flight, once its files are synced to disk.

    Returns why its run is suspect, which it also adds to the line; None if it is not.
    """
    _sync_file_system(directory)
    why = suspect(directory, line)
    append(directory, {name: value for name, value in line.items() if name != "slot"} | {"suspect": why})
    forget(directory, line)
    return why


def suspect(directory: Path, line: Mapping[str, Any]) -> str | None:
    """Why the run of a finished cell is suspect; reads the manifest for lines of earlier versions."""
    if "suspect" in line:
        return None if line["suspect"] is None else str(line["suspect"])
    try:
        found = manifest.read(directory / str(line.get("run_dir", "")))
        return findings.why(findings.known(found, ()))
    except (OSError, ValueError) as error:
        return f"{manifest.NAME} cannot be read: {error}"


def forget(directory: Path, line: Mapping[str, Any]) -> None:
    """Removes the note of a cell in flight."""
    _note(directory, line).unlink(missing_ok=True)


def _note(directory: Path, line: Mapping[str, Any]) -> Path:
    slot = line.get("slot")
    return directory / (f"running-{slot}.json" if slot else "running.json")


def _sync(descriptor: int) -> None:
    os.fsync(descriptor)


def _sync_file_system(path: Path) -> None:
    """Syncs a run's files at once by syncfs(2): fsync of each would commit the disk's journal each time."""
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
