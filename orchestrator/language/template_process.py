"""Renders templates in a separate process, whose memory and CPU time the kernel limits.

A request is a line of JSON on standard input: `check` or `render` with a template, the `names` of its values,
and those `values` that changed since the last request. The answer is a line of JSON on standard output:
`fault` (null if there is none), `cpu_s` (the CPU time that it took) and, after `render`, `text`. A template
that takes too much CPU time ends the process by SIGXCPU.
"""

from __future__ import annotations

import json
import math
import os
import resource
import select
import sys
from typing import Any

from . import sandbox
from .template_rules import CPU_S, MEMORY, TemplateFaultError

IDLE_S = 10.0  # s; an unused process ends, because a child of the client may hold the pipe open


def answer(request: dict[str, Any], values: dict[str, Any]) -> dict[str, str | None]:
    """Checks or renders the template of one request, and returns the answer; the answer has no `text` if
    there is a fault.
    """
    if "check" in request:
        return {"fault": sandbox.fault(request["check"])}
    try:
        return {"fault": None, "text": sandbox.render(request["render"], values)}
    except TemplateFaultError as error:
        return {"fault": str(error)}


def _cpu_s() -> float:
    return sum(os.times()[:2])


def bound_cpu() -> None:
    """Limits the process to about 3 more seconds (CPU_S) of CPU time from now on, rounded up."""
    used = math.ceil(_cpu_s())
    resource.setrlimit(resource.RLIMIT_CPU, (used + CPU_S, resource.RLIM_INFINITY))


def main() -> None:
    """Limits memory and core dumps, then answers requests until the input ends or 10 s pass without a
    request.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    known: dict[str, Any] = {}
    lines = os.fdopen(0, "rb", buffering=0)
    while select.select([lines], [], [], IDLE_S)[0]:
        line = _line(lines)
        if not line:
            return
        request = json.loads(line)
        known |= request.pop("values")
        values = {name: known[name] for name in request["names"]}
        bound_cpu()
        begin_s = _cpu_s()
        answered = {**answer(request, values), "cpu_s": _cpu_s() - begin_s}
        sys.stdout.write(json.dumps(answered) + "\n")
        sys.stdout.flush()


def _line(source: Any) -> bytes:
    """Reads one line; returns it empty at the end of the input. The input is unbuffered, because `select`
    sees only bytes that are still in the pipe.
    """
    parts: list[bytes] = []
    while part := source.read(1 << 16):
        parts.append(part)
        if part.endswith(b"\n"):  # the client sends one request and waits for its answer
            return b"".join(parts)
    return b""


if __name__ == "__main__":
    main()
