"""Keeps the outcomes of a hunt's trials, one JSON line each, so that a killed hunt can continue."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contract import regular
from orchestrator.hunt.model import HuntError, Outcome

ABOUT, LINES = "hunt.json", "trials.jsonl"


@contextmanager
def opened(directory: Path, about: dict[str, Any]) -> Iterator[Journal]:
    """Locks the hunt's directory and yields its journal. `about` has the settings that must be the same when
    a hunt continues. Raises HuntError if the directory holds another hunt, or other files.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with regular.open_lock(directory / ".lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            text = "another hunt runs there; wait for it, or give another --out"
            raise HuntError(f"{directory}: {text}") from error
        _insist_it_is_the_same(directory, about)
        yield Journal(directory / LINES)


def _insist_it_is_the_same(directory: Path, about: dict[str, Any]) -> None:
    path = directory / ABOUT
    if not path.exists():
        # a killed hunt may leave a partly written file
        before_it = (".lock", "reproductions", f"{ABOUT}.part")
        others = [one.name for one in directory.iterdir() if one.name not in before_it]
        if others:
            rule = f"holds {others[0]}, which is no hunt's"
            raise HuntError(f"{directory}: {rule}; give another --out")
        regular.write(path, json.dumps(about, indent=1, sort_keys=True))
        return
    known = regular.read_json(path)
    if differing := [key for key in about if known.get(key) != about[key]]:
        rule = f"holds a hunt begun with another {differing[0]}"
        raise HuntError(f"{directory}: {rule}; undo the change to go on, or give another --out")


class Journal:
    """The outcomes of trials by key; the file has one line for each, in the order in which they ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Outcome] = {}
        whole = 0
        if path.exists():
            content = regular.read_bytes(path)
            whole = content.rfind(b"\n") + 1  # the last line of a killed hunt may be incomplete
            for line in content[:whole].splitlines():
                entry = json.loads(line)
                key = entry.pop("key")
                self._known[key] = _outcome(entry)
            os.truncate(path, whole)

    def get(self, key: str) -> Outcome | None:
        """Returns the outcome that was recorded under a key; None if there is none."""
        return self._known.get(key)

    def put(self, key: str, outcome: Outcome) -> None:
        """Records an outcome; it is on the disk when this returns."""
        self._known[key] = outcome
        with regular.named(self._path), self._path.open("ab") as file:
            file.write(json.dumps({"key": key, **dataclasses.asdict(outcome)}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _outcome(entry: dict[str, Any]) -> Outcome:
    lists = ("failing", "why", "features")
    fields: dict[str, Any] = {key: tuple(v) if key in lists else v for key, v in entry.items()}
    return Outcome(**fields)
