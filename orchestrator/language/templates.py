"""Checks and renders the templates of commands and files, in a separate process with limited memory and CPU
time.

The process (template_process.py) starts with the first text that has a brace; most topologies have none.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .template_rules import ALL_CPU_S, CPU_S, MEMORY, SLOW_S, TemplateFaultError

SERVER = "orchestrator.language.template_process"
_NEVER_SENT = object()


class _Renderer:
    """The client of the template process; starts the process at the first request, and again after it has
    ended.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._sent: dict[str, Any] = {}
        self._spent_s = 0.0  # CPU time of slow templates

    def ask(self, request: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the process's answer. Raises TemplateFaultError if the process ended with an error or twice
        without an answer, or if slow templates took more than ALL_CPU_S before.
        """
        with self._lock:
            if self._spent_s > ALL_CPU_S:
                raise TemplateFaultError(f"other templates took more than {ALL_CPU_S} s of CPU time already")
            for _ in range(2):  # an idle process ends by itself, and then a second one answers
                process = self._running()
                line = self._exchange(process, self._encoded(request, values))
                if line:
                    answer: dict[str, Any] = json.loads(line)
                    self._spent_s += answer["cpu_s"] if answer["cpu_s"] > SLOW_S else 0.0
                    return answer
                if (status := self._end(process)) != 0:
                    self._spent_s += CPU_S
                    raise TemplateFaultError(_cause(status))
        raise TemplateFaultError("the process that renders templates ended without an answer")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            argv = [sys.executable, "-s", "-m", SERVER]
            self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._sent = {}
        return self._process

    def _encoded(self, request: dict[str, Any], values: Mapping[str, Any]) -> bytes:
        """Returns the request as a line of JSON, with only those values that the process does not have yet,
        so that the addresses of 10,000 nodes are sent once, not 10,000 times.
        """
        new = {k: v for k, v in values.items() if self._sent.get(k, _NEVER_SENT) is not v}
        self._sent |= new
        return json.dumps({**request, "names": list(values), "values": new}).encode() + b"\n"

    @staticmethod
    def _exchange(process: subprocess.Popen[bytes], line: bytes) -> bytes:
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(line)
            process.stdin.flush()
        return process.stdout.readline()

    def _end(self, process: subprocess.Popen[bytes]) -> int:
        """Waits for a process that gave no answer, and returns its exit status."""
        self._process = None
        with suppress(BrokenPipeError):
            process.communicate()
        return process.returncode


def _cause(status: int) -> str:
    if status == -signal.SIGXCPU:
        return f"it needs more than {CPU_S} s of CPU time"
    return f"it ended the process that renders it, which has {MEMORY >> 20} MiB of memory; status {status}"


_renderer = _Renderer()


def fault(template: str) -> str | None:
    """Returns the reason why a template is invalid or cannot be checked; None if it is valid. Does not render
    it; text without a brace is always valid.
    """
    if "{" not in template:
        return None
    try:
        wrong = _renderer.ask({"check": template}, {})["fault"]
    except TemplateFaultError as error:
        return str(error)
    return None if wrong is None else str(wrong)


def render(template: str, values: Mapping[str, Any]) -> str:
    """Returns the template's text for these values; text without a brace is returned unchanged. Raises
    TemplateFaultError if rendering fails.
    """
    if "{" not in template:
        return template
    answer = _renderer.ask({"render": template}, values)
    if answer["fault"] is not None:
        raise TemplateFaultError(str(answer["fault"]))
    return str(answer["text"])
