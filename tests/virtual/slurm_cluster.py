"""Runs a real Slurm for tests in namespaces of its own (slurm_cluster.sh), which commands enter."""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_S = 60.0
SPACES = ("--net", "--mount", "--pid", "--uts", "--ipc")


def slurm_missing() -> str | None:
    """Returns the reason why Slurm cannot be started here; None if it can."""
    if os.geteuid() != 0:
        return "only root can start Slurm"
    missing = [program for program in ("munged", "slurmctld", "slurmd") if shutil.which(program) is None]
    return f"{missing[0]} is not installed; images/packages.sh slurm" if missing else None


@dataclass(frozen=True)
class Cluster:
    """A running Slurm; `first` is the pid of its first process."""

    directory: Path
    first: str

    def at(self, cwd: Path) -> tuple[str, ...]:
        """Returns the words that start a program in the cluster's namespaces, in that directory."""
        cache = os.environ.get("XDG_CACHE_HOME", str(Path("~/.cache").expanduser()))  # the lab's kernel
        settings = (
            f"SLURM_CONF={self.directory}/slurm.conf",
            f"HOME={self.directory}",
            f"XDG_CACHE_HOME={cache}",
        )
        return ("nsenter", "-t", self.first, *SPACES, "env", f"--chdir={cwd}", *settings)

    def queue(self) -> list[str]:
        """Returns the ids of the jobs that have not ended."""
        return self.ran("squeue", "--noheader", "--format", "%i").split()

    def ran(self, *argv: str) -> str:
        """Runs a program of Slurm and returns its output."""
        return subprocess.run(
            [*self.at(self.directory), *argv], capture_output=True, text=True, check=True
        ).stdout


@contextmanager
def cluster(directory: Path) -> Iterator[Cluster]:
    """Yields a Slurm; all its processes end with it."""
    directory.mkdir()
    script = Path(__file__).with_suffix(".sh")
    argv = ["unshare", *SPACES, "--fork", "--kill-child", "--mount-proc", str(script), str(directory)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield Cluster(directory, _ready(process))
        finally:
            process.kill()


def _ready(process: subprocess.Popen[str]) -> str:
    """Waits until Slurm is ready and returns the pid of its first process."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        said = process.stdout.readline() if selector.select(START_S) else "nothing"
    assert said == "ready\n", f"Slurm did not start: {said}"
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
