"""Finds runs whose lab died without recording its end (kill -9, a power cut), and records that they were
interrupted.

raw/owner.json names the process that owns the run, by pid, start time and boot of the machine.
"""

from __future__ import annotations

import json
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

from contract import manifest, regular
from orchestrator.lab.state import Owned, owned, start_ticks

OWNER = "raw/owner.json"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that owns a run.

    host, boot: the machine and its boot; the pid has a meaning only together with them.
    """

    host: str
    boot: str
    pid: int
    start_ticks: int

    def dead(self) -> bool:
        """Returns whether the process has ended. Returns False if the run belongs to another machine, since
        the answer is unknown then.
        """
        here = socket.gethostname() == self.host
        return here and (_boot() != self.boot or start_ticks(self.pid) != self.start_ticks)


def note_owner(run_dir: Path, pid: int) -> Owned:
    """Records the process that owns the run, and returns it; raises LabError if it does not exist."""
    process = owned("lab", pid)
    owner = Owner(socket.gethostname(), _boot(), pid, process.start_ticks)
    with regular.named(run_dir / OWNER):
        (run_dir / OWNER).write_text(json.dumps(asdict(owner)) + "\n", encoding="utf-8")
    return process


def settle(run_dir: Path) -> bool:
    """Records `interrupted` for a run whose state is running although its process is dead; returns whether it
    did so. Returns False if raw/owner.json is missing or unreadable, or names another machine.
    """
    try:
        owner = Owner(**regular.read_json(run_dir / OWNER))
        dead = owner.dead()
    except (OSError, ValueError, TypeError):
        # an earlier version wrote the file, or it is incomplete; the run's state then stays `running`, which
        # is suspect too
        return False
    return dead and interrupted(run_dir, "its lab was killed, or its machine went down: no end is recorded")


def interrupted(run_dir: Path, why: str) -> bool:
    """Records the state `interrupted` for a run whose state is `running`; returns whether it did."""
    if manifest.load(run_dir).state != RUNNING:
        return False
    manifest.ended(run_dir, "interrupted", why)
    return True


def _boot() -> str:
    return BOOT_ID.read_text(encoding="utf-8").strip()
