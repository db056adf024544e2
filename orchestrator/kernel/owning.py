"""Provides functions that the owner processes of labs share: they write lines to standard output, and notice
requests to end.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from collections.abc import Callable

ENDINGS = (signal.SIGINT, signal.SIGTERM)


def emit(line: str) -> None:
    """Writes one line to standard output and flushes it."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def emit_end(error: str, status: int) -> None:
    """Writes the last two events (`error`, `end`) of a lab that could not write them itself."""
    emit(json.dumps({"event": "error", "text": error}))
    emit(json.dumps({"event": "end", "status": status}))


def watch_endings(selector: selectors.BaseSelector, asked: Callable[[signal.Signals], None]) -> None:
    """Calls `asked` on SIGINT and SIGTERM, and, with SIGTERM, at the end of standard input. Standard input is
    a pipe from the command that started the run, so its end means that the command has ended.
    """
    wake, wake_end = os.pipe()
    os.set_blocking(wake_end, False)
    for number in ENDINGS:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(wake_end)

    def signals() -> None:
        for number in os.read(wake, 64):
            if number in ENDINGS:
                asked(signal.Signals(number))

    def starter() -> None:
        if not os.read(0, 512):
            selector.unregister(0)
            asked(signal.SIGTERM)

    selector.register(wake, selectors.EVENT_READ, signals)
    try:
        selector.register(0, selectors.EVENT_READ, starter)
    except PermissionError:  # /dev/null is standard input of a lab that outlives the command
        return
