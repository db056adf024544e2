"""Builds a program that sends or takes messages with the accounting helper of a language."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from vnet.accounting import FILES, helper

HERE = Path(__file__).parent
SOURCES = {language: f"both{Path(name).suffix.replace('.h', '.c')}" for language, name in FILES.items()}
SOURCES["java"] = "Both.java"
GO = "/usr/local/go/bin/go"
COMPILERS = {
    "c": "gcc",
    "go": GO,
    "java": "javac",
    "javascript": "node",
    "python": "python3",
    "rust": "rustc",
}
# The command that builds the program in the directory of both files; empty: nothing is built.
BUILDS: dict[str, Sequence[str]] = {
    "c": ("gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o", "both", "both.c"),
    "go": (GO, "build", "-o", "both", "both.go", "vnet_accounting.go"),
    "java": ("javac", "-Xlint:all", "-Werror", "Both.java", "VnetAccounting.java"),
    "javascript": (),
    "python": (),
    "rust": ("rustc", "--edition", "2024", "-D", "warnings", "-o", "both", "both.rs"),
}
STARTS: dict[str, Sequence[str]] = {
    "c": ("./both",),
    "go": ("./both",),
    "java": ("java", "Both"),
    "javascript": ("node", "both.mjs"),
    "python": ("/usr/bin/python3", "-u", "both.py"),
    "rust": ("./both",),
}


def missing(language: str) -> str | None:
    """Returns the reason why the language cannot be tested here; None if it can."""
    compiler = COMPILERS[language]
    return None if shutil.which(compiler) else f"{compiler} is not installed"


def build(language: str, place: Path) -> Sequence[str]:
    """Builds the program in `place`, and returns the command that starts it there."""
    shutil.copy(helper(language), place)
    shutil.copy(HERE / SOURCES[language], place)
    if BUILDS[language]:
        quiet = {"GOFLAGS": "-buildvcs=false", "GO111MODULE": "off", "CGO_ENABLED": "0"}
        environment = os.environ | quiet | {"GOCACHE": str(place / "cache")}
        done = subprocess.run(BUILDS[language], cwd=place, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return STARTS[language]
