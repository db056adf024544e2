"""Reads runs and campaigns, judges them and writes their pages, from the tables of the reduction.

Its import checks that enough threads can be created, because polars panics or hangs if it cannot create its
own.
"""

from __future__ import annotations

import os
import threading

MORE = 8  # number of threads besides one for each processor; polars starts some besides its workers


def insist_on_threads() -> None:
    """Starts and ends as many threads as polars uses: one for each processor, and MORE; RuntimeError if that
    fails.
    """
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


insist_on_threads()
