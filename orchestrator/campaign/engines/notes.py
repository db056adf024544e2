"""What a machine knows of a cell that it runs or has run: `engine/CELL.json` of the campaign.

From it a cell that has ended is not run a second time, and one whose worker was lost is taken down by name
before it begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.campaign.teardown import take_down
from orchestrator.kernel.process import end
from orchestrator.lab.state import Owned, read_lab, state_root
from orchestrator.lab.state import replace as replace_file
from orchestrator.model import codec

ENGINE = "engine"  # directory of a campaign's
BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True)
class Note:
    """attempt: tells times of running it apart. lab: the name of its state directory; run: of its run
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
        """With the process that runs it."""
        return replace(self, process=process)

    def ended(self, state: str, error: str | None, wall_s: float) -> Note:
        """How it ended."""
        return replace(self, process=None, state=state, error=error, wall_s=round(wall_s, 1))


def read_note(place: Path, cell: str) -> Note | None:
    """None where nothing is known of the cell, or what is was cut short by a crash."""
    try:
        return codec.from_json(Note, _path(place, cell).read_text())
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_note(place: Path, cell: str, note: Note) -> None:
    """A reader sees the old or the new one. Nobody reads it where the campaign took its directory away."""
    try:
        replace_file(_path(place, cell), codec.to_json(note))
    except FileNotFoundError:
        return


def settle(note: Note, place: Path) -> None:
    """End what a lost worker has left of a cell on this machine; nothing of what is not that cell's."""
    if note.state or note.boot != BOOT:
        return
    end([note.process] if note.process else [])
    lab = read_lab(state_root() / note.lab)
    if str(lab.get("run_dir", "")) == str((place / "runs" / note.run).resolve()):
        take_down(note.lab, politely=False)


def _path(place: Path, cell: str) -> Path:
    return place / ENGINE / f"{cell}.json"
