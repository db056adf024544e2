"""Runs the tools that builds need; errors state what is missing or failed, and the remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.images.errors import ImageError

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def require(tools: Mapping[str, str]) -> None:
    """Raises ImageError if a program is in none of the system's directories (PATH of this module); `tools`
    maps programs to Debian packages.
    """
    missing = {tool: package for tool, package in tools.items() if not shutil.which(tool, path=PATH)}
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise ImageError(f"{', '.join(missing)}: not installed; apt-get install {packages}")


def run(
    argv: Sequence[str | Path], *, why: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Runs a tool to its end and returns its standard output; `env` adds to this process's environment.

    Raises ImageError, whose text begins with `why`, if the tool cannot be started; if it fails, the text has
    its last lines.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env={**os.environ, "LC_ALL": "C", **(env or {})},
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise ImageError(f"{why}: {words[0]}: {error.strerror}") from None
    if done.returncode:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        raise ImageError(f"{why}: {' '.join(words[:6])} ended with status {done.returncode}\n{last}")
    return done.stdout
