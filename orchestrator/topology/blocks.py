"""Orders the runs of a campaign: each repetition is a block, which holds one run of every setting.

Within a block the runs follow the order of the file, or a random one. A random order prevents changes of the
machine (temperature, other load) from favouring one setting (Fisher, The Design of Experiments, 1935). The
random numbers come from a hash, so that the same file has the same order with every version of Python, and an
additional level does not change the order of the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

Order = Literal["listed", "random"]


def block(order: Order, settings: Sequence[str], seed: int, repetition: int) -> list[int]:
    """Returns the indices of `settings` in the order in which one repetition runs them."""
    indices = range(len(settings))
    if order == "listed":
        return list(indices)
    return sorted(indices, key=lambda index: _drawn(settings[index], seed, repetition))


def _drawn(setting: str, seed: int, repetition: int) -> bytes:
    return hashlib.sha256(f"{seed}\n{repetition}\n{setting}".encode()).digest()
