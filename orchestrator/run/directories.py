"""Makes the directory that a run writes to; refuses a parent that is another user's symbolic link."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


class RunError(Exception):
    """Raised when a run cannot get its directory, or fails after its start; the text names the place and the
    reason.
    """


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a run or campaign: the directory `out`, or a new one below `results` if that is None."""

    out: Path | None
    results: Path

    def run_dir(self, lab: str) -> Path:
        """Makes the directory of a new run of the lab and returns it; RunError if it cannot be made."""
        return named_run_dir(self.out) if self.out else new_run_dir(self.results / lab)


def new_run_dir(lab_dir: Path, now: datetime | None = None) -> Path:
    """Makes the directory of a new run below `lab_dir`, named by the local time `now`: `20260131T120000`.
    If that name exists, appends `-2`, `-3` and so on, up to `-999`. Raises RunError if it cannot be made.
    """
    stamp = (now or datetime.now()).strftime("%Y%m%dT%H%M%S")
    return make_dir(lab_dir, stamp)


def named_run_dir(out: Path) -> Path:
    """Makes the directory that the user names with `--out` for one run, and its parents; returns `out`.
    Raises RunError if the directory is not empty or cannot be made, or if its parent is another user's
    symbolic link.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _insist_it_is_no_snare(out.parent)
        out.mkdir(exist_ok=True)
        taken = any(out.iterdir())
    except OSError as error:
        raise RunError(
            f"--out {out}: results cannot be written there ({error.strerror}); choose another place"
        ) from error
    if taken:
        raise RunError(
            f"--out {out}: is not empty, and --out names the directory of this run alone; name a new one, "
            f"or write --results {out} for runs below it"
        )
    return out


def make_dir(parent: Path, name: str) -> Path:
    """Makes and returns `parent/name`, or the first of `name-2` ... `name-999` that does not exist yet.

    Raises RunError if all of them exist, if none can be made, or if `parent` is another user's symbolic link.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _insist_it_is_no_snare(parent)
        for number in range(1, 1000):
            made = parent / (name if number == 1 else f"{name}-{number}")
            with suppress(FileExistsError):
                made.mkdir()
                return made
    except OSError as error:
        raise RunError(
            f"{error.filename or parent}: results cannot be written there ({error.strerror}); choose another "
            "place with --results"
        ) from error
    raise RunError(f"{parent / name}: 999 directories of that name are there; remove some")


def _insist_it_is_no_snare(parent: Path) -> None:
    """Raises RunError if `parent` is a symbolic link of a user other than root, this user and sudo's caller,
    because results would go to the link's target.
    """
    owner = parent.lstat().st_uid
    if parent.is_symlink() and owner not in (0, os.geteuid(), int(os.environ.get("SUDO_UID", "0"))):
        raise RunError(
            f"{parent}: is a link to {parent.readlink()} that another user made (uid {owner}): no results "
            "go there; remove it, or choose another place with --results or --out"
        )
