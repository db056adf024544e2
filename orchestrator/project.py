"""Where the project's files beside its Python are: in the checkout, or carried along by what is installed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

CODE_ROOT = Path(__file__).resolve().parents[1]  # holds `orchestrator`: a checkout, or site-packages
CARRIED = CODE_ROOT / "vnet" / "_carried"  # setup.py lays them out there as in a checkout
INSTALLED = CARRIED.is_dir()
PROJECT = CARRIED if INSTALLED else CODE_ROOT
AGENT = PROJECT / "target" / "release" / "vnet-agent"
PROGRAMS = ("images/agent/src", "capture/reducer/src")  # what agent and reducer are built from
NOTED = CARRIED / "programs.sha256"  # setup.py writes it: what is installed has not got these

# The command to show to a user: an installed vNET has no Makefile.
BUILD_KERNEL = "vnet images build lab-kernel" if INSTALLED else "make kernel"
PACKAGES = f"{PROJECT}/images/packages.sh" if INSTALLED else "images/packages.sh"
BUILD_AGENT = "install vNET again" if INSTALLED else f"run `make setup` in {PROJECT}"
BINDINGS = 'pip install "vnet-testbed[vm]"' if INSTALLED else "make setup"


OTHERS_WRITE = 0o022  # modes by which a group and all others write


def keep_others_out() -> None:
    """From here on only this account writes what this process and its children make, under any umask."""
    os.umask(os.umask(0o077) | OTHERS_WRITE)


def programs_digest() -> str:
    """SHA-256 over the sources of agent and reducer, the same in a checkout and in what is built from it."""
    if INSTALLED:
        return NOTED.read_text()
    whole = hashlib.sha256()
    for path in sorted(path for root in PROGRAMS for path in (CODE_ROOT / root).rglob("*.rs")):
        whole.update(f"{path.relative_to(CODE_ROOT)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return whole.hexdigest()


# The lab's own kernels that can be built, by the arguments of images/kernel/build.sh.
LAB_KERNELS: dict[str, tuple[str, ...]] = {"lab-kernel": (), "lab-kernel-fallback": ("fallback.lock",)}
