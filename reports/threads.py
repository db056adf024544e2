"""Checks that threads can be created, before a library needs them that would panic or hang."""

from __future__ import annotations

import os
import threading

MORE = 8  # than processors: threads of the table library beside its workers


def insist() -> None:
    """Start and end as many threads as the table library uses; raises RuntimeError if that fails."""
    over = threading.Event()
    begun: list[threading.Thread] = []
    try:
        for _ in range((os.cpu_count() or 1) + MORE):
            thread = threading.Thread(target=over.wait, daemon=True)
            thread.start()
            begun.append(thread)
    finally:
        over.set()
        for thread in begun:
            thread.join()
