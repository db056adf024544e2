"""Builds vNET's own small kernel for many VMs on one machine, by images/guest/kernel.sh, which caches it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from orchestrator.images.errors import ImageError
from orchestrator.images.recipe import GUEST
from orchestrator.project import PROJECT

SCRIPT = GUEST / "kernel.sh"
INPUTS = [SCRIPT, GUEST / "tiny.config", PROJECT / "images" / "kernel" / "source.lock"]


def build(target: Path, say: Callable[[str], None]) -> None:
    """Writes the kernel to `target`; builds it if its inputs changed (minutes).

    Raises ImageError with the build's last lines.
    """
    say("tiny kernel: about 4 minutes of two cores where it is new")
    done = subprocess.run([SCRIPT], capture_output=True, text=True, check=False, env=dict(os.environ))
    if done.returncode:
        raise ImageError("\n".join((done.stderr or done.stdout).strip().splitlines()[-10:]))
    shutil.copyfile(Path(done.stdout.strip().splitlines()[-1]), target)
