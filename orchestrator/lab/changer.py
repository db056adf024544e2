"""Changes queues and reads them back through a `tc` process that stays in a namespace, so that a change
starts no process.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import time
from typing import Any

from contract.plan import Step
from orchestrator.lab.errors import LabError
from orchestrator.queueing import htb

PATIENCE_S = 10.0  # s; tc needs less than 1 ms for a line, but a stopped machine may take long
# largest number of `tc` processes kept, each with two descriptors; the least recently used one is closed
MOST = 64
END = b"["  # tc prints the JSON of qdiscs on one line, which is the last of an answer


class Changers:
    """The `tc` processes, one for each of the MOST namespaces with the latest changes."""

    def __init__(self) -> None:
        self._open: dict[str, _Changer] = {}

    def change(self, step: Step, device: str) -> list[dict[str, Any]]:
        """Applies the step's lines; returns the qdiscs and classes of one device, in the form of
        `tools.qdiscs`. Raises LabError if tc refuses or does not answer.
        """
        changer = self._open.pop(step.netns, None) or _Changer(step.netns)
        if len(self._open) >= MOST:
            self._open.pop(next(iter(self._open))).close()
        self._open[step.netns] = changer
        try:
            return changer.change(step, device)
        except LabError:
            self._open.pop(step.netns).close()
            raise

    def close(self) -> None:
        for changer in self._open.values():
            changer.close()
        self._open.clear()


class _Changer:
    def __init__(self, netns: str) -> None:
        self._netns = netns
        try:
            self._process = subprocess.Popen(
                ["tc", "-j", "-n", netns, "-batch", "-"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except OSError as error:
            raise LabError(f"tc: {error.strerror}") from error

    def change(self, step: Step, device: str) -> list[dict[str, Any]]:
        asked = f"{step.text}class show dev {device}\nqdisc show dev {device}\n"
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(asked.encode())
            stdin.flush()
        except OSError as error:
            raise self._failed(step, "", error.strerror or "its input is closed") from error
        said = self._answer(step)
        classes, _, last = said.rpartition("\n" + END.decode()) if said[:1] != "[" else ("", "", said[1:])
        qdiscs = [entry | {"dev": device} for entry in json.loads("[" + last) if entry]
        return qdiscs + htb.entries(device, classes)

    def close(self) -> None:
        """Closes tc's input, which ends the process; kills it after 10 s."""
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # tc did not read all lines
                assert stream is not None
                stream.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _answer(self, step: Step) -> str:
        """Reads tc's output up to the end of the line of qdiscs; raises LabError if tc ends or is silent for
        10 s.
        """
        out, found, until = self._process.stdout, b"", time.monotonic() + PATIENCE_S
        assert out is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(out, selectors.EVENT_READ)
            while not (found.endswith(b"\n") and found.splitlines()[-1].startswith(END)):
                if not waiting.select(max(0.0, until - time.monotonic())):
                    raise self._failed(step, found.decode(errors="replace"), "no answer")
                if not (more := os.read(out.fileno(), 65536)):
                    raise self._failed(step, found.decode(errors="replace"), "it ended")
                found += more
        return found.decode(errors="replace")

    def _failed(self, step: Step, said: str, why: str) -> LabError:
        lines = "; ".join(said.strip().splitlines()[-2:])
        return LabError(
            f"tc in {self._netns}: {step.reason}: {lines or why}; the lines are: {step.text.strip()}"
        )
