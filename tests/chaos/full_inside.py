"""Runs commands of vNET in forks of one process under `full.c`, so that each costs no new start of Python.

Reads a request as JSON in each line of standard input (arguments, the call that fails, whether the disk stays
full) and answers with a line: the status, or null after the time limit, and the output.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from orchestrator.cli.main import main

# polars is not loaded before the fork, because its threads would be missing in the child.
LOADED = (
    "pydantic",
    "jinja2",
    "yaml",
    "orchestrator.cli.report",
    "orchestrator.cli.run",
    "orchestrator.cli.campaign",
)
WITHIN_S = 400  # time limit of a command that takes a second on an idle machine
PASSED = ("LD_PRELOAD", "VNET_FULL_TOP", "VNET_FULL_SHARED")
HEAD = struct.Struct("=QQQ")  # header of full.c: the count, the call that fails, whether the disk stays full


class Inheriting(subprocess.Popen[bytes]):
    """Passes full.c on to child processes that get an environment of their own, as the lab process does."""

    def __init__(self, *args: Any, **more: Any) -> None:
        if more.get("env") is not None:
            more["env"] = {**more["env"], **{name: os.environ[name] for name in PASSED}}
        super().__init__(*args, **more)


def forked(argv: list[str], said: Path) -> int | None:
    """Returns the status of the command, None if it did not end in time; its output is in `said`."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        target = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(target, 1)
        os.dup2(target, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        status = 70
        try:
            status = main(argv)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def serve() -> None:
    for name in LOADED:
        importlib.import_module(name)
    assert threading.active_count() == 1 == len(list(Path("/proc/self/task").iterdir())), (
        "a fork loses threads"
    )
    subprocess.Popen = Inheriting  # type: ignore[assignment, misc]
    shared, said = Path(os.environ["VNET_FULL_SHARED"]), Path(os.environ["VNET_FULL_SAID"])
    for line in sys.stdin:
        asked = json.loads(line)
        with shared.open("r+b") as file:
            file.write(HEAD.pack(0, asked["at"], asked["stays"]))
        status = forked(asked["argv"], said)
        print(json.dumps([status, said.read_text(errors="replace")]), flush=True)


serve()
