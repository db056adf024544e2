"""Whether threads can be made, found out before libraries need them that panic or wait without end if not."""

from __future__ import annotations

import os
import threading

MORE = 8  # than processors: what the library of the tables has beside its workers


def insist() -> None:
    """As many threads as the tables take, begun and ended; RuntimeError ("can't start new thread") if not."""
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
