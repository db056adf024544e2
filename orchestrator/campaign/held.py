"""Runs and campaigns that a directory holds, with age, size and verdict: to choose, remove and archive them.

A campaign is one entry with all its runs: without one of them it would be another campaign. What a run is,
is read from its manifest and verdicts; seals, which cover every byte, are not checked here.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contract import manifest, verdict
from orchestrator.lab import dead
from reports import judged

RUN, CAMPAIGN = "run", "campaign"
DEEPEST = 4  # levels below the directory where an entry may be: results/LAB/RUN has two
# What an entry can be, the worst first; the word of an entry is the first that one of its runs has.
RUNNING, SUSPECT, UNJUDGED = "running", "suspect", "unjudged"
WORDS = (RUNNING, "failed", "interrupted", SUSPECT, verdict.FAILS, verdict.OPEN, UNJUDGED, verdict.HOLDS)


class HeldError(Exception):
    """An entry that cannot be removed or archived; the text is place, value, rule, remedy."""


@dataclass(frozen=True, slots=True)
class Held:
    """One entry. `ended_s`: Unix time of the newest manifest or journal in it."""

    path: Path
    kind: str
    runs: int
    size_bytes: int
    captures_bytes: int
    ended_s: float
    word: str

    def age_s(self, now_s: float) -> float:
        return max(0.0, now_s - self.ended_s)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which entries are meant: all conditions that are set must hold."""

    older_s: float | None = None
    larger_bytes: int | None = None
    words: tuple[str, ...] = ()

    def takes(self, held: Held, now_s: float) -> bool:
        old = self.older_s is None or held.age_s(now_s) >= self.older_s
        large = self.larger_bytes is None or held.size_bytes >= self.larger_bytes
        return old and large and (not self.words or held.word in self.words)


def chosen(directory: Path, choice: Choice, now_s: float | None = None) -> list[Held]:
    """The entries below a directory that the choice takes, the largest first; HeldError without it."""
    if not directory.is_dir():
        raise HeldError(f"{directory}: no such directory; name the one that runs were written to (--results)")
    now = time.time() if now_s is None else now_s
    found = [held for path, kind in _entries(directory, DEEPEST) if (held := _held(path, kind))]
    return sorted((h for h in found if choice.takes(h, now)), key=lambda h: (-h.size_bytes, h.path))


def remove(held: Held) -> None:
    """Removes an entry. HeldError if it is running, or has become something else since it was listed."""
    insist_it_has_ended(held)
    shutil.rmtree(held.path)
    if held.kind == RUN:
        with contextlib.suppress(OSError):  # results/LAB has other runs
            held.path.parent.rmdir()


def insist_it_has_ended(held: Held) -> None:
    """HeldError if a run of the entry is running now."""
    now = _held(held.path, held.kind)
    if now is None:
        raise HeldError(f"{held.path}: is no {held.kind} any more; list again")
    if now.word == RUNNING:
        raise HeldError(
            f"{held.path}: is running; wait, or end it (`vnet ls`), or if it is of another machine, there"
        )


def _entries(directory: Path, depth: int) -> Iterator[tuple[Path, str]]:
    """Runs and campaigns below a directory; links are not followed."""
    if (directory / "campaign.json").is_file():
        yield directory, CAMPAIGN
    elif (directory / manifest.NAME).is_file() or (directory / "plan.json").is_file():
        yield directory, RUN
    elif depth:
        for entry in sorted(directory.iterdir()):
            if entry.is_dir() and not entry.is_symlink():
                yield from _entries(entry, depth - 1)


def _held(path: Path, kind: str) -> Held | None:
    """The facts of an entry; None if it is none."""
    if not path.is_dir():
        return None
    marks = sorted(path.rglob(manifest.NAME)) if kind == CAMPAIGN else [path / manifest.NAME]
    runs = [mark.parent for mark in marks if mark.is_file() or kind == RUN]
    words = [_word(run) for run in runs]
    if kind == CAMPAIGN and _is_locked(path):
        words.append(RUNNING)
    size, captures = _sizes(path)
    times = [m.stat().st_mtime for m in (*marks, path / "campaign.json", path / "plan.json") if m.is_file()]
    word = next((w for w in WORDS if w in words), UNJUDGED)
    return Held(path, kind, len(runs), size, captures, max(times, default=0.0), word)


def _word(run: Path) -> str:
    """What a run is, in one of WORDS."""
    dead.settle(run)
    try:
        known = manifest.read(run)
    except (OSError, ValueError):
        return SUSPECT
    state = str(known.get("state", "interrupted"))
    if state in (RUNNING, "failed", "interrupted"):
        return state
    if known.get("suspect"):
        return SUSPECT
    counted = judged.known(run)
    of_run = [counted.get(of, {}) for of in ("proof", "promise", "check")]
    if any(words.get(verdict.FAILS) for words in of_run):
        return verdict.FAILS
    if judged.untold(counted):
        return verdict.OPEN
    return verdict.HOLDS if any(words.get(verdict.HOLDS) for words in of_run) else UNJUDGED


def _is_locked(campaign: Path) -> bool:
    """Whether a process runs the campaign now."""
    try:
        with (campaign / "lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _sizes(path: Path) -> tuple[int, int]:
    """Bytes on the disk of everything below, and of its captures."""
    total = captures = 0
    for directory, _, names in os.walk(path):
        for name in names:
            blocks = Path(directory, name).lstat().st_blocks * 512
            total += blocks
            captures += blocks if name.endswith(".pcap") else 0
    return total, captures
