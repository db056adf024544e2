"""Runs whose lab has died without writing its end (kill -9, a power cut): whoever finds one writes it.

raw/owner.json names the process that the run lives in, by pid, start time and boot of the machine.
"""

from __future__ import annotations

import json
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

from capture import manifest
from orchestrator.lab.state import start_ticks

OWNER = "raw/owner.json"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that a run lives in; `host` and `boot` tell whether its pid means anything here and now."""

    host: str
    boot: str
    pid: int
    start_ticks: int

    def dead(self) -> bool:
        """False where it cannot be known: it was started on a machine of another name."""
        here = socket.gethostname() == self.host
        return here and (_boot() != self.boot or start_ticks(self.pid) != self.start_ticks)


def note_owner(run_dir: Path, pid: int) -> None:
    """Write down which process the run lives in; nothing where that process has ended already."""
    if (ticks := start_ticks(pid)) is not None:
        owner = Owner(socket.gethostname(), _boot(), pid, ticks)
        (run_dir / OWNER).write_text(json.dumps(asdict(owner)) + "\n", encoding="utf-8")


def settle(run_dir: Path) -> bool:
    """Write the end of a run that is said to be running while its process is dead; whether it was one."""
    try:
        owner = Owner(**json.loads((run_dir / OWNER).read_text(encoding="utf-8")))
        dead = owner.dead()
    except (OSError, ValueError, TypeError):
        return False  # of an earlier version, or torn: the state stays as it is, which is suspect, too
    return dead and interrupted(run_dir, "its lab was killed, or its machine went down: nobody wrote its end")


def interrupted(run_dir: Path, why: str) -> bool:
    """Write `interrupted` as the end of a run that has none; whether it had none."""
    if manifest.read(run_dir).get("state") != RUNNING:
        return False
    manifest.ended(run_dir, "interrupted", why)
    return True


def _boot() -> str:
    return BOOT_ID.read_text(encoding="utf-8").strip()
