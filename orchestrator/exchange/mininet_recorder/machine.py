"""Prevents the script from acting on the machine: replaced functions start no process and read no input."""

from __future__ import annotations

import builtins
import os
import subprocess
from typing import Any

from .said import leave, pause
from .unknown import Output, unknown


class Ended:
    """A process that has ended, as subprocess gives it. It was not run, so its output is empty and its status
    0, both Unknown.
    """

    pid = 0
    stdin = None

    def __init__(self, command: Any, keys: dict[str, Any]) -> None:
        is_text = any(keys.get(key) for key in ("text", "universal_newlines", "encoding", "errors"))
        empty: str | bytes = "" if is_text else b""
        self.args, self.source = command, f"the output of `{_shown(command):.60}`"
        self.returncode = unknown(0, f"the status of `{_shown(command):.60}`")
        self.empty = unknown(empty, self.source)
        self.stdout: Any = Output(empty, self.source) if keys.get("piped") else self.empty
        self.stderr: Any = Output(empty, self.source) if keys.get("piped") else self.empty

    def wait(self, *_words: Any, **_keys: Any) -> Any:
        """Lets time pass, and returns the status."""
        pause()
        return self.returncode

    def poll(self) -> Any:
        """Returns the status, and reports the question: whether the process still runs is not known."""
        leave(f"the script asks whether `{_shown(self.args):.60}` still runs, which is not known here")
        return self.returncode

    def communicate(self, *_words: Any, **_keys: Any) -> tuple[Any, Any]:
        """Lets time pass, and returns the output and the errors."""
        pause()
        return self.empty, self.empty

    def check_returncode(self) -> None:
        """Does nothing: the status is 0."""

    terminate = kill = send_signal = lambda *_words: None

    def __enter__(self) -> Ended:
        return self

    def __exit__(self, *_error: Any) -> None:
        return None


def ended(command: Any, keys: dict[str, Any]) -> Any:
    """Returns a process that has ended. keys: those of the call, which decide between text and bytes."""
    return Ended(command, keys)


def _shown(command: Any) -> str:
    return " ".join(map(str, command)) if isinstance(command, list | tuple) else str(command)


def refused(command: Any = "", *_args: Any, **keys: Any) -> Any:
    leave(f"`{_shown(command):.100}` is not run on this machine")
    return ended(command, keys)


def keep_away() -> None:
    """Replaces functions that start processes or read input by ones that do nothing and return empty
    answers with status 0; reports the commands and questions. The user id becomes 0.
    """
    subprocess.run = refused  # type: ignore[assignment]
    subprocess.Popen = lambda *words, **keys: refused(*words, **{**keys, "piped": True})  # type: ignore[misc, assignment]
    for name in ("call", "check_call"):
        setattr(subprocess, name, lambda *words, **keys: refused(*words, **keys).returncode)
    subprocess.check_output = lambda *words, **keys: refused(*words, **keys).stdout
    subprocess.getoutput = lambda command, **_keys: refused(command, text=True).stdout
    subprocess.getstatusoutput = lambda command, **_keys: _both(refused(command, text=True))
    os.system = lambda command: refused(command).returncode
    os.popen = lambda command, *_rest: refused(command, text=True, piped=True).stdout
    os.getuid = os.geteuid = lambda: 0  # scripts test whether root runs them, which is not needed here
    builtins.input = _asked


def _both(done: Any) -> tuple[Any, Any]:
    return done.returncode, done.stdout


def _asked(prompt: object = "") -> str:
    pause()
    leave(f"the question {str(prompt)!r:.60} gets an empty answer")
    answer: str = unknown("", "the answer to a question")
    return answer
