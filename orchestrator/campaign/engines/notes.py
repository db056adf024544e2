"""Reads and writes a worker's note on each cell that its machine runs or has run: `engine/CELL.json` in the
campaign's directory. From this note a worker sees that a cell has ended, and does not run it again. If a lost
worker has left a lab of a cell, the worker takes that lab down before it runs the cell again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from contract import codec, regular
from orchestrator.kernel.process import end
from orchestrator.lab.state import Owned, read_lab, state_root
from orchestrator.lab.state import replace as replace_file
from orchestrator.run.teardown import take_down

ENGINE = "engine"  # name of the directory in a campaign's directory
BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True)
class Note:
    """A worker's record of one cell on its machine. sitting: identifies the command that runs the campaign.
    attempt: distinguishes repeated executions of the cell. boot: identifies the machine and its boot. lab,
    run: names of the state directory and of the run directory. process: the process that runs the cell, None
    after its end. state, error, wall_s: results of the ended cell; state is empty before.
    """

    sitting: str
    attempt: str
    boot: str
    lab: str
    run: str
    process: Owned | None = None
    state: str = ""
    error: str | None = None
    wall_s: float = 0.0

    def of(self, process: Owned) -> Note:
        """Returns a copy of the note with `process` as the process that runs the cell."""
        return replace(self, process=process)

    def ended(self, state: str, error: str | None, wall_s: float) -> Note:
        """Returns a copy of the note with end state, error and duration of the cell, and without process."""
        return replace(self, process=None, state=state, error=error, wall_s=round(wall_s, 1))


def read_note(place: Path, cell: str) -> Note | None:
    """Reads the note on a cell in the campaign's directory `place`; None if it is missing or damaged."""
    try:
        return codec.from_json(Note, regular.read_text(_path(place, cell)))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_note(place: Path, cell: str, note: Note) -> None:
    """Replaces the note on a cell atomically; does nothing if the campaign has removed the directory of the
    notes.
    """
    try:
        replace_file(_path(place, cell), codec.to_json(note))
    except FileNotFoundError:
        return


def settle(note: Note, place: Path) -> None:
    """Ends the process and takes down the lab that a lost worker left on this machine for the cell of this
    note. Does nothing for a cell that has ended and for a note of another boot or machine; spares a lab with
    another run directory.
    """
    if note.state or note.boot != BOOT:
        return
    end([note.process] if note.process else [])
    lab = read_lab(state_root() / note.lab)
    if str(lab.get("run_dir", "")) == str((place / "runs" / note.run).resolve()):
        take_down(note.lab, politely=False)


def _path(place: Path, cell: str) -> Path:
    return place / ENGINE / f"{cell}.json"
