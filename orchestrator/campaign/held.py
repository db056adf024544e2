"""Lists runs and campaigns below a directory with age, size and verdict; chooses and removes them.

A campaign is one entry with all its runs. The verdict of a run comes from its manifest and its verdicts;
seals are not checked, since that would read every byte.
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

from contract import manifest, regular, seal, verdict
from orchestrator.lab import dead
from reports import judged

RUN, CAMPAIGN = "run", "campaign"
DEEPEST = 4  # levels below the directory that are searched; results/LAB/RUN has two
# The words for an entry, the worst first; an entry has the worst word of its runs.
RUNNING, SUSPECT, NO_VERDICT = "running", "suspect", "no verdict"
WORDS = (RUNNING, "failed", "interrupted", SUSPECT, verdict.FAILS, verdict.OPEN, NO_VERDICT, verdict.HOLDS)


class EntryError(Exception):
    """An entry cannot be listed, removed or archived; the text is place, value, rule, remedy."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One run or campaign. kind: RUN or CAMPAIGN. runs: the number of its runs. word: one of WORDS.

    ended_s: Unix time of the last change of a manifest, campaign.json or plan.json in it; 0 if there is none.
    """

    path: Path
    kind: str
    runs: int
    size_bytes: int
    captures_bytes: int
    ended_s: float
    word: str

    def age_s(self, now_s: float) -> float:
        """Returns the seconds from `ended_s` to `now_s`, at least 0."""
        return max(0.0, now_s - self.ended_s)


@dataclass(frozen=True, slots=True)
class Choice:
    """Conditions on entries: a least age (seconds), a least size (bytes), a choice of verdicts. An entry must
    meet all conditions that are set (not None, not empty).
    """

    older_s: float | None = None
    larger_bytes: int | None = None
    words: tuple[str, ...] = ()

    def takes(self, held: Entry, now_s: float) -> bool:
        """Returns whether the entry meets all conditions at the Unix time `now_s`."""
        old = self.older_s is None or held.age_s(now_s) >= self.older_s
        large = self.larger_bytes is None or held.size_bytes >= self.larger_bytes
        return old and large and (not self.words or held.word in self.words)


def chosen(directory: Path, choice: Choice, now_s: float | None = None) -> list[Entry]:
    """Returns the entries below `directory` that meet `choice`, the largest first.

    `now_s`: Unix time, by default the present. Raises EntryError if the directory does not exist.
    """
    if not directory.is_dir():
        raise EntryError(
            f"{directory}: no such directory; name the one that runs were written to (--results)"
        )
    now = time.time() if now_s is None else now_s
    found = [held for path, kind in _entries(directory, DEEPEST) if (held := _held(path, kind))]
    return sorted((h for h in found if choice.takes(h, now)), key=lambda h: (-h.size_bytes, h.path))


def remove(held: Entry) -> None:
    """Removes the directory of an entry, and that of its lab if the entry was its last run.

    Raises EntryError if the entry is running, or has become something else since it was listed.
    """
    insist_it_has_ended(held)
    shutil.rmtree(held.path)
    if held.kind == RUN:
        with contextlib.suppress(OSError):  # the directory is not empty, because results/LAB has other runs
            held.path.parent.rmdir()


def insist_it_has_ended(held: Entry) -> None:
    """Raises EntryError if the entry or one of its runs is running, or if its directory does not exist."""
    now = _held(held.path, held.kind)
    if now is None:
        raise EntryError(f"{held.path}: is no {held.kind} any more; list again")
    if now.word == RUNNING:
        raise EntryError(
            f"{held.path}: is running; wait, or end it (`vnet ls`), on the machine on which it runs"
        )


def _entries(directory: Path, depth: int) -> Iterator[tuple[Path, str]]:
    """Yields (path, kind) of each run and campaign at most `depth` levels below; does not search inside
    these, and follows no links.
    """
    if (directory / "campaign.json").is_file():
        yield directory, CAMPAIGN
    elif (directory / manifest.NAME).is_file() or (directory / "plan.json").is_file():
        yield directory, RUN
    elif depth:
        for entry in sorted(directory.iterdir()):
            if entry.is_dir() and not entry.is_symlink():
                yield from _entries(entry, depth - 1)


def _held(path: Path, kind: str) -> Entry | None:
    """Returns the run or campaign in the directory `path`, with its number of runs, sizes, last change and
    worst verdict; None if the directory does not exist.
    """
    if not path.is_dir():
        return None
    marks = sorted(path.rglob(manifest.NAME)) if kind == CAMPAIGN else [path / manifest.NAME]
    runs = [mark.parent for mark in marks if mark.is_file() or kind == RUN]
    words = [_word(run) for run in runs]
    words += _expected(path)  # a campaign's expectations are judged over all repetitions
    if kind == CAMPAIGN and _is_locked(path):
        words.append(RUNNING)
    size, captures = _sizes(path)
    times = [m.stat().st_mtime for m in (*marks, path / "campaign.json", path / "plan.json") if m.is_file()]
    word = next((w for w in WORDS if w in words), NO_VERDICT)
    return Entry(path, kind, len(runs), size, captures, max(times, default=0.0), word)


def _expected(path: Path) -> list[str]:
    """Returns a list with the worst verdict on the expectations of a run or campaign, which is `cannot tell`
    if a cell ended after they were judged; an empty list without expectations.
    """
    counted = judged.known(path)
    if not counted.get("expectation"):
        return []
    return [verdict.OPEN if judged.stale(path) else judged.unmet(counted)]


def _word(run: Path) -> str:
    """Returns the word of WORDS for one run: first from the state and marks of its manifest, then from its
    verdicts on links, guarantees and checks. A run without an end state counts as interrupted. A run with an
    unreadable manifest, or with a file that was changed after its seal, counts as suspect.
    """
    dead.settle(run)
    try:
        known = manifest.load(run)
    except (OSError, ValueError):
        return SUSPECT
    state = known.state or "interrupted"
    if state in (RUNNING, "failed", "interrupted"):
        return state
    if known.suspect or seal.altered_since(run):
        return SUSPECT
    counted = judged.known(run)
    of_run = [counted.get(of, {}) for of in ("proof", "guarantee", "check")]
    if any(words.get(verdict.FAILS) for words in of_run):
        return verdict.FAILS
    if judged.untold(counted):
        return verdict.OPEN
    return verdict.HOLDS if any(words.get(verdict.HOLDS) for words in of_run) else NO_VERDICT


def _is_locked(campaign: Path) -> bool:
    """Returns whether a process runs the campaign now, by its lock on the file `lock`."""
    try:
        with regular.open_read(campaign / "lock") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # the file is absent, or the campaign's process has not written it
        return False
    return False


def _sizes(path: Path) -> tuple[int, int]:
    """Returns the bytes on the disk of all files below `path`, and of the captures (*.pcap) among them."""
    total = captures = 0
    for directory, _, names in os.walk(path):
        for name in names:
            blocks = Path(directory, name).lstat().st_blocks * 512
            total += blocks
            captures += blocks if name.endswith(".pcap") else 0
    return total, captures
