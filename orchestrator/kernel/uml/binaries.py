"""Finds the User-Mode Linux kernels that can run on this machine, in the order of preference."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orchestrator.kernel.uml import recipe

# origins of a kernel, the preferred one first
ORDER: tuple[recipe.Made, ...] = ("source", "faults", "fallback", "older")
CPUINFO = Path("/proc/cpuinfo")
MODULES_ROOT = Path("/usr/lib/uml/modules")
BUILT = {
    "source": "built by make kernel",
    "faults": "built with wrong clocks and schedules of nodes",
    "fallback": "built by make kernel from its fallback source",
    "older": "built by make kernel from an older recipe",
}


@dataclass(frozen=True, slots=True)
class UmlBinary:
    """A User-Mode Linux kernel.

    modules: the directory of its modules; None if everything is built in. made: for a built kernel, whether
    it comes from this checkout's source, its fallback source, or an older recipe.
    """

    path: Path
    release: str
    origin: Literal["given", "built", "debian"]
    modules: Path | None
    made: recipe.Made = "source"

    @property
    def seccomp(self) -> bool:
        """True if the kernel supports `seccomp=on` (Linux 6.16), which intercepts system calls without
        ptrace, five times as fast.
        """
        return self._since(6, 16)

    @property
    def any_registers(self) -> bool:
        """True if the kernel adapts to the size of a processor's registers (Linux 6.13).

        An older one has room for the registers of AVX-512 at most, and panics at the first program on a
        processor with AMX.
        """
        return self._since(6, 13)

    def _since(self, major: int, minor: int) -> bool:
        known = tuple(int(part) for part in self.release.split(".")[:2])
        return known >= (major, minor)

    def describe(self) -> str:
        """Returns the release and the origin of the kernel in a few words for the user."""
        words = {
            "given": "from VNET_UML_KERNEL",
            "built": BUILT[self.made],
            "debian": "Debian's user-mode-linux",
        }
        return f"{self.release}, {words[self.origin]}"


def cache_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Returns the directory of built kernels, which has a subdirectory for each hash of their
    build inputs.
    """
    base = env.get("XDG_CACHE_HOME") or str(Path(env.get("HOME") or "~").expanduser() / ".cache")
    return Path(base) / "vnet" / "kernels"


def find_binaries(env: Mapping[str, str] = os.environ, cpuinfo: str | None = None) -> list[UmlBinary]:
    """Returns all kernels that run here, in the order of preference: given by VNET_UML_KERNEL, built (this
    checkout's first, then the newest), Debian's.

    cpuinfo: the text of /proc/cpuinfo; None: this machine's.
    """
    amx = has_amx(cpuinfo)
    return [binary for binary in _found(env) if binary.any_registers or not amx]


def too_old(env: Mapping[str, str] = os.environ, cpuinfo: str | None = None) -> list[UmlBinary]:
    """Returns the kernels that have no room for this processor's registers (AMX), which `find_binaries`
    leaves out.
    """
    return [binary for binary in _found(env) if not binary.any_registers] if has_amx(cpuinfo) else []


def has_amx(cpuinfo: str | None = None) -> bool:
    """Returns whether the processor has AMX, which adds 8 KiB of registers. cpuinfo: the text of
    /proc/cpuinfo.
    """
    return " amx_tile" in (CPUINFO.read_text() if cpuinfo is None else cpuinfo)


def _found(env: Mapping[str, str]) -> list[UmlBinary]:
    found = []
    for path, origin in _candidates(env):
        if (release := release_of(path)) is not None:
            modules = MODULES_ROOT / release
            made = recipe.made(path) if origin == "built" else "source"
            found.append(UmlBinary(path, release, origin, modules if modules.is_dir() else None, made))
    return found


def _candidates(env: Mapping[str, str]) -> list[tuple[Path, Literal["given", "built", "debian"]]]:
    found: list[tuple[Path, Literal["given", "built", "debian"]]] = []
    if given := env.get("VNET_UML_KERNEL"):
        found.append((Path(given).resolve(), "given"))
    built = [path for path in cache_dir(env).glob("*/linux") if os.access(path, os.X_OK)]
    newest = sorted(built, key=lambda p: p.stat().st_mtime, reverse=True)
    found += [(path, "built") for path in sorted(newest, key=lambda p: ORDER.index(recipe.made(p)))]
    if debian := shutil.which("linux.uml", path="/usr/bin:/usr/local/bin:" + env.get("PATH", "")):
        found.append((Path(debian), "debian"))
    return found


def release_of(path: Path) -> str | None:
    """Returns the release that the kernel prints; None if it does not run here."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    release = answer.stdout.strip()
    return release if answer.returncode == 0 and release[:1].isdigit() else None
