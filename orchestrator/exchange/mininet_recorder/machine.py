"""Prevents the script from acting on the machine: replaced functions start no process, do not sleep and read
no input.
"""

from __future__ import annotations

import builtins
import os
import subprocess
import time
import types
from typing import Any

from .said import leave, pause


def ended(keys: dict[str, Any]) -> Any:
    """Returns an object like a subprocess.Popen that has ended with status 0, without output. keys: the
    keywords of the replaced call, which decide between text and bytes.
    """
    empty: Any = "" if keys.get("text") or keys.get("universal_newlines") or keys.get("encoding") else b""
    lines = types.SimpleNamespace(read=lambda *_: empty, readline=lambda *_: empty, close=lambda: None)
    done = types.SimpleNamespace(
        returncode=0, stdout=empty, stderr=empty, pid=0, wait=lambda *_, **_k: 0, poll=lambda: 0,
        communicate=lambda *_, **_k: (empty, empty), terminate=lambda: None, kill=lambda: None,
        send_signal=lambda _n: None, stdin=None, args=[],
    )  # fmt: skip
    if keys.get("stdout") is not None or keys.get("piped"):
        done.stdout = lines
    return done


def refused(command: Any = "", *_args: Any, **keys: Any) -> Any:
    shown = " ".join(map(str, command)) if isinstance(command, list | tuple) else str(command)
    leave(f"`{shown:.100}` is not run on this machine")
    return ended(keys)


def keep_away() -> None:
    """Replaces functions that start processes, sleep or read input by ones that do nothing and return empty
    answers with status 0; reports the commands and questions. The user id becomes 0.
    """
    for name in ("run", "Popen"):
        setattr(subprocess, name, refused)
    for name in ("call", "check_call", "getstatusoutput"):
        setattr(subprocess, name, lambda *words, **keys: refused(*words, **keys).returncode)
    setattr(subprocess, "check_output", lambda *words, **keys: ended(keys).stdout if refused(*words) else b"")  # noqa: B010
    subprocess.getoutput = lambda *words, **_keys: str(refused(*words) and "")
    os.system = lambda command: int(refused(command).returncode)
    os.popen = lambda command, *_rest: _lines(command)
    os.getuid = os.geteuid = lambda: 0  # scripts test whether root runs them, which is not needed here
    time.sleep = lambda _seconds: pause()
    builtins.input = _asked


def _lines(command: str) -> Any:
    import io

    refused(command)
    return io.StringIO("")


def _asked(prompt: object = "") -> str:
    leave(f"the question {str(prompt)!r:.60} gets an empty answer")
    return ""
