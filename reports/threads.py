"""Checks that enough threads can be created, because polars panics or hangs if it cannot create its own; the
package `reports` runs the check at its import.
"""

from __future__ import annotations

import os
import threading

MORE = 8  # threads more than processors: polars starts some beside its workers


def insist() -> None:
    """Starts and ends as many threads as polars uses; RuntimeError if that fails."""
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
