"""Adds to a wheel the files that are no Python: agent, reducer, recipes of kernels and guests, examples."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from orchestrator.project import NOTED, programs_digest  # noqa: E402

BINARIES = ("target/release/vnet-agent", "target/release/vnet-reduce")
CARRIED = ("pyproject.toml", "images/packages.sh", "images/kernel", "images/guest", "topologies", *BINARIES)
TARGET = "vnet/_carried"  # orchestrator/project.py


class BuildPy(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name in CARRIED:
            source, target = HERE / name, Path(self.build_lib) / TARGET / name
            if not source.exists():
                raise SystemExit(f"{source}: is not built; run make wheel")
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copy2(source, target)
        (Path(self.build_lib) / TARGET / NOTED.name).write_text(programs_digest())


class BdistWheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        """Returns a tag for any Python 3 and the oldest glibc that provides what the programs need (PEP
        600).
        """
        if not all((HERE / name).exists() for name in BINARIES):
            return super().get_tag()  # an editable install has no programs: make setup builds them after it
        asked = [re.findall(rb"GLIBC_2\.(\d+)", (HERE / name).read_bytes()) for name in BINARIES]
        newest = max(int(minor) for found in asked for minor in found)
        system, _, machine = super().get_tag()[2].partition("_")
        return "py3", "none", f"many{system}_2_{newest}_{machine}"


class Programs(Distribution):
    def has_ext_modules(self) -> bool:
        """Returns True: the wheel contains programs for one kind of machine, as it would with extensions."""
        return True


setup(distclass=Programs, cmdclass={"build_py": BuildPy, "bdist_wheel": BdistWheel})
