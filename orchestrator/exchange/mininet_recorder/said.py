"""Collects reports on parts of the script that are left out (LEFT) or done differently (CHANGED), each with
the script's line; omits repetitions, and reports beyond MOST.
"""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from typing import Any

LEFT: list[str] = []
CHANGED: list[str] = []
MOST = 2000  # largest number of lines, so that a loop of unknown calls does not fill the memory
SCRIPT = [""]  # the script's path, set before it runs
STOPPED = [False]  # whether the script has stopped its network
PAUSED = [0]  # line of the last call that waits; 0: there was none


def here() -> int:
    """Returns the script's line that is being executed; 0 if the script is not on the stack."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == SCRIPT[0]:
            return frame.f_lineno
        if frame.f_back is None:
            break
        frame = frame.f_back
    return 0


# Modules through which a script asks for files, its environment, chance and the machine.
_THROUGH = frozenset((
    "os", "posixpath", "genericpath", "pathlib", "glob", "shutil", "random", "collections.abc", "getpass",
    "secrets", "uuid", "socket", "platform", "configparser", "io", "multiprocessing.context", "fnmatch",
    "datetime", "contextlib", "fileinput",
))  # fmt: skip


def asked() -> bool:
    """Returns whether the script, or a module beside it, calls the recorder's function, itself or through a
    module of _THROUGH.
    """
    frame = sys._getframe(1)
    own = __name__.rpartition(".")[0]
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name == "os" and frame.f_code.co_name == "makedirs":
            return False  # it looks which directories are to be made
        if not name.startswith(own) and name not in _THROUGH:
            return Path(frame.f_code.co_filename).is_relative_to(script_directory())
        if frame.f_back is None:
            break
        frame = frame.f_back
    return False


def leave(what: str) -> None:
    """Reports a part of the script that is left out."""
    _add(LEFT, what)


def change(what: str) -> None:
    """Reports a part of the script that vNET does differently."""
    _add(CHANGED, what)


def pause() -> None:
    """Notes that the script waits: it sleeps, or runs a test."""
    PAUSED[0] = here() or PAUSED[0]


def later(what: str) -> None:
    """Reports a change of the network after a pause or in a thread, since a lab has the last state from its
    start on; and one after the network's end, which has no effect.
    """
    if STOPPED[0] and here():
        leave(f"{what} after the network's end is without effect")
    elif threading.current_thread() is not threading.main_thread():
        change(f"{what} in a thread of the script: from the lab's start on here")
    elif PAUSED[0] and here():
        change(f"{what} after the pause of line {PAUSED[0]}: from the lab's start on here")


def stable(text: str) -> str:
    """Returns a text without the addresses and modules of Python's objects, which differ each time."""
    return re.sub(r" object at 0x[0-9a-f]+| at 0x[0-9a-f]+|(?<=<)mininet_recorder\.\w+\.", "", text)


def _add(lines: list[str], what: str) -> None:
    line, what = here(), stable(what)
    text = f"line {line}: {what}" if line else what
    if text not in lines and len(lines) < MOST:
        lines.append(text)


def call_text(name: str, words: tuple[Any, ...], keys: dict[str, Any]) -> str:
    """Returns the text of a call for a report, at most 100 characters."""
    shown = [_short(word) for word in words] + [f"{key}={_short(value)}" for key, value in keys.items()]
    text = f"{name}({', '.join(shown)})"
    return text if len(text) <= 100 else f"{text[:97]}..."


def _short(value: Any) -> str:
    return repr(value) if isinstance(value, str | int | float | bool | None) else str(value)


def script_directory() -> Path:
    """Returns the directory of the script."""
    return Path(SCRIPT[0]).parent
