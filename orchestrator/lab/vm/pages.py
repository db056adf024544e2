"""Switches off huge pages for emulated machines, so that memory which a guest gives back stays with the
host.
"""

from __future__ import annotations

import ctypes
import os

PR_SET_THP_DISABLE = 41  # linux/prctl.h


def small_only() -> None:
    """Disables transparent huge pages for this process and those it starts later (prctl(2)); OSError if
    refused. khugepaged makes a huge page of one small page and 511 that a guest gave back, so machines grow
    up to all of their memory. Emulation does not gain from huge pages; KVM does, so callers omit this with
    KVM.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "prctl(PR_SET_THP_DISABLE)")
