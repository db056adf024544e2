"""Finds the project's files that are not Python: in the checkout, or in `vnet/_carried` once installed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

# directory that contains `orchestrator`: a checkout, or site-packages
CODE_ROOT = Path(__file__).resolve().parents[1]
CARRIED = CODE_ROOT / "vnet" / "_carried"  # setup.py copies the files there, in the layout of a checkout
INSTALLED = CARRIED.is_dir()
PROJECT = CARRIED if INSTALLED else CODE_ROOT
AGENT = PROJECT / "target" / "release" / "vnet-agent"
PROGRAMS = ("images/agent/src", "capture/reducer/src")  # the sources of the agent and of the reducer
# the hash of the sources, from setup.py, because an installed vNET lacks the sources
NOTED = CARRIED / "programs.sha256"

# Commands that messages name; an installed vNET has no Makefile.
BUILD_KERNEL = "vnet images build lab-kernel" if INSTALLED else "make kernel"
PACKAGES = f"{PROJECT}/images/packages.sh" if INSTALLED else "images/packages.sh"
BUILD_AGENT = "install vNET again" if INSTALLED else f"run `make setup` in {PROJECT}"
BINDINGS = 'pip install "vnet-testbed[vm]"' if INSTALLED else "make setup"


OTHERS_WRITE = 0o022  # mode bits with which the group and all others may write


def keep_others_out() -> None:
    """Sets the umask so that neither the group nor others can write the files that this process and its
    children create; keeps the other bits.
    """
    os.umask(os.umask(0o077) | OTHERS_WRITE)


def programs_digest() -> str:
    """Returns the hexadecimal SHA-256 of the Rust sources of agent and reducer; an installed vNET, which
    lacks the sources, returns the digest that setup.py wrote.
    """
    if INSTALLED:
        return NOTED.read_text()
    whole = hashlib.sha256()
    for path in sorted(path for root in PROGRAMS for path in (CODE_ROOT / root).rglob("*.rs")):
        whole.update(f"{path.relative_to(CODE_ROOT)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return whole.hexdigest()


# For each lab kernel that can be built, the arguments of images/kernel/build.sh.
LAB_KERNELS: dict[str, tuple[str, ...]] = {
    "lab-kernel": (),
    "lab-kernel-fallback": ("fallback.lock",),
    "lab-kernel-faults": ("faults.lock",),
}
