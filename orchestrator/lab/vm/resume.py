"""Sets the time and a new random seed of a machine that was restored from saved memory.

Its memory holds the clock and the kernel's random state of the moment it was saved: otherwise the clock would
be late, and every return to one snapshot would draw the same numbers.
"""

from __future__ import annotations

import base64
import os

from orchestrator.lab.clock import Clock
from orchestrator.lab.operations import Resume
from orchestrator.lab.vm.dialogue import Dialogue, ask

SEED_BYTES = 32  # size of the kernel's entropy pool (BLAKE2s)


def resumed(clock: Clock) -> Dialogue[None]:
    """Sets the machine's CLOCK_REALTIME to the lab's, with an error of at most the trip, and a fresh random
    seed.
    """
    seed = base64.b64encode(os.urandom(SEED_BYTES)).decode()
    yield from ask(Resume(clock.now_ns(), seed))
