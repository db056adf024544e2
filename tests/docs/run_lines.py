"""Runs each line of a file as a command line of vnet, in one process; prints those that fail, status 1."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from pathlib import Path

from orchestrator.cli.main import main


def failed(line: str) -> bool:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = main(shlex.split(line))
    if status:
        print(f"vnet {line}: status {status}\n{said.getvalue()}")
    return bool(status)


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    sys.exit(1 if [line for line in lines if failed(line)] else 0)
