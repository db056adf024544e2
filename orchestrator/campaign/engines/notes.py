"""A machine's note on a cell that it runs or has run: `engine/CELL.json` of the campaign.

With it a worker does not run a finished cell again, and takes the lab of a lost worker's cell down by name
before the cell begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from contract import codec
from orchestrator.kernel.process import end
from orchestrator.lab.state import Owned, read_lab, state_root
from orchestrator.lab.state import replace as replace_file
from orchestrator.run.teardown import take_down

ENGINE = "engine"  # directory of a campaign's
BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True)
class Note:
    """attempt: distinguishes repeated executions. lab: the name of its state directory; run: of its run
    directory. state: how it ended, empty before.
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
        """The note with the process that runs the cell."""
        return replace(self, process=process)

    def ended(self, state: str, error: str | None, wall_s: float) -> Note:
        """The note with the cell's end state."""
        return replace(self, process=None, state=state, error=error, wall_s=round(wall_s, 1))


def read_note(place: Path, cell: str) -> Note | None:
    """The note on a cell; None if there is none, or a crash truncated it."""
    try:
        return codec.from_json(Note, _path(place, cell).read_text())
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_note(place: Path, cell: str, note: Note) -> None:
    """Replaces the note atomically; does nothing if the campaign has removed its directory."""
    try:
        replace_file(_path(place, cell), codec.to_json(note))
    except FileNotFoundError:
        return


def settle(note: Note, place: Path) -> None:
    """Ends everything that a lost worker has left of this cell on this machine, and nothing else."""
    if note.state or note.boot != BOOT:
        return
    end([note.process] if note.process else [])
    lab = read_lab(state_root() / note.lab)
    if str(lab.get("run_dir", "")) == str((place / "runs" / note.run).resolve()):
        take_down(note.lab, politely=False)


def _path(place: Path, cell: str) -> Path:
    return place / ENGINE / f"{cell}.json"
