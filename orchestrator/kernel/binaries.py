"""Which User-Mode Linux kernels this machine has, the best first."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MODULES_ROOT = Path("/usr/lib/uml/modules")


@dataclass(frozen=True, slots=True)
class UmlBinary:
    """A kernel to boot. `modules`: where its modules are, None if everything is built in."""

    path: Path
    release: str
    origin: Literal["given", "built", "debian"]
    modules: Path | None

    @property
    def seccomp(self) -> bool:
        """Whether it knows `seccomp=on` (Linux 6.16): system calls without ptrace, five times as fast."""
        major, minor = (int(part) for part in self.release.split(".")[:2])
        return (major, minor) >= (6, 16)

    def describe(self) -> str:
        """A few words for the user: release and where it comes from."""
        words = {
            "given": "from VNET_UML_KERNEL",
            "built": "built by make kernel",
            "debian": "Debian's user-mode-linux",
        }
        return f"{self.release}, {words[self.origin]}"


def cache_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Where built kernels are kept: one directory per hash of what they were built from."""
    base = env.get("XDG_CACHE_HOME") or str(Path(env.get("HOME") or "~").expanduser() / ".cache")
    return Path(base) / "vnet" / "kernels"


def find_binaries(env: Mapping[str, str] = os.environ) -> list[UmlBinary]:
    """All kernels found, in the order of preference: given, newest built, Debian's."""
    found = []
    for path, origin in _candidates(env):
        if (release := release_of(path)) is not None:
            modules = MODULES_ROOT / release
            found.append(UmlBinary(path, release, origin, modules if modules.is_dir() else None))
    return found


def _candidates(env: Mapping[str, str]) -> list[tuple[Path, Literal["given", "built", "debian"]]]:
    found: list[tuple[Path, Literal["given", "built", "debian"]]] = []
    if given := env.get("VNET_UML_KERNEL"):
        found.append((Path(given).resolve(), "given"))
    built = [path for path in cache_dir(env).glob("*/linux") if os.access(path, os.X_OK)]
    found += [(path, "built") for path in sorted(built, key=lambda p: p.stat().st_mtime, reverse=True)]
    if debian := shutil.which("linux.uml", path="/usr/bin:/usr/local/bin:" + env.get("PATH", "")):
        found.append((Path(debian), "debian"))
    return found


def release_of(path: Path) -> str | None:
    """What the kernel says that it is; None if it does not run here."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    release = answer.stdout.strip()
    return release if answer.returncode == 0 and release[:1].isdigit() else None
