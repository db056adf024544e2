"""Where the project's files beside its Python are: in the checkout, or carried along by what is installed."""

from __future__ import annotations

from pathlib import Path

CODE_ROOT = Path(__file__).resolve().parents[1]  # holds `orchestrator`: a checkout, or site-packages
CARRIED = CODE_ROOT / "vnet" / "_carried"  # setup.py lays them out there as in a checkout
INSTALLED = CARRIED.is_dir()
PROJECT = CARRIED if INSTALLED else CODE_ROOT
AGENT = PROJECT / "target" / "release" / "vnet-agent"

# What a user is told to run: an installed vNET has no Makefile.
BUILD_KERNEL = "vnet images build lab-kernel" if INSTALLED else "make kernel"
PACKAGES = f"{PROJECT}/images/packages.sh" if INSTALLED else "images/packages.sh"
BUILD_AGENT = "install vNET again" if INSTALLED else f"run `make setup` in {PROJECT}"
BINDINGS = 'pip install "vnet-testbed[vm]"' if INSTALLED else "make setup"
