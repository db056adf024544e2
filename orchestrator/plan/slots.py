"""Plans the slots of a direction, and computes the mean wait of a lone frame for a slot
(net/sched/sch_netem.c).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from contract.plan import Impairment, Slot

if TYPE_CHECKING:  # labs load this module, and have the standard library only
    from ..topology.impairments import Slot as FileSlot

Tables = Mapping[str, Sequence[int]]  # values in 1/8192 of a jitter, in ascending order
SCALE = 8192
POINTS = 256  # equally likely values that represent the distribution of a jitter


def planned(source: FileSlot | None) -> Slot | None:
    """Returns the plan's slots for those of the file; None without slots. Slots without `max` have `max`
    equal to `min`; slots by a file of delays have the least and the largest delay of the file.
    """
    if source is None:
        return None
    packets, size = source.packets or 0, source.bytes or 0
    if source.delays is not None:
        own = source.delays.delays
        least, most = _drawn_ns(own.delay_ns, own.jitter_ns, (own.entries[0], own.entries[-1]))
        if not own.jitter_ns:
            return Slot(round(least), round(most), packets, size)
        return Slot(round(least), round(most), packets, size, str(source.delays), own.delay_ns, own.jitter_ns)
    least_ns = source.min or 0
    return Slot(least_ns, source.max if source.max is not None else least_ns, packets, size)


def lone_ns(wanted: Impairment, sending_ns: int, tables: Tables) -> float | None:
    """Returns the mean delay in ns of a frame without other traffic that takes `sending_ns` to be sent. None:
    the direction has no slots, or its jitter follows a table of iproute2, which is unknown here.
    """
    slot = wanted.slot
    dues = _dues_ns(wanted, sending_ns, tables) if slot is not None else None
    if slot is None or dues is None:
        return None
    times: Sequence[float] = ()
    if slot.table is not None:
        times = _drawn_ns(slot.mean_ns, slot.jitter_ns, tables[slot.table])
    return _mean([slotted_ns(due, slot, times) for due in dues])


def slotted_ns(due_ns: float, slot: Slot, times_ns: Sequence[float] = ()) -> float:
    """Returns the mean delay in ns of a lone frame that would leave `due_ns` after its arrival if there were
    no slots.

    When the frame arrives, netem draws the start of a slot, evenly between min and max or from `times_ns`
    (rising). If the slot would begin before the frame is due, netem draws again at that time (get_slot_next
    and netem_dequeue).
    """
    if times_ns:
        first = bisect_left(times_ns, due_ns)
        again = first * (due_ns + _mean(times_ns))
        return (again + sum(times_ns[first:])) / len(times_ns)
    low, high = slot.min_ns, slot.max_ns
    mean = (low + high) / 2
    if due_ns <= low:
        return mean
    if due_ns > high:
        return due_ns + mean
    before = (due_ns - low) / (high - low) if high > low else 0.0
    return before * (due_ns + mean) + (1 - before) * (due_ns + high) / 2


def _dues_ns(wanted: Impairment, sending_ns: int, tables: Tables) -> list[float] | None:
    """Returns equally likely times in ns from the arrival of a frame to its departure without slots: one time
    without jitter, else POINTS times. None: the jitter's table is unknown.
    """
    if not wanted.jitter_ns:
        return [wanted.delay_ns + sending_ns]
    shares = [(n + 0.5) / POINTS for n in range(POINTS)]
    if wanted.distribution == "uniform":
        places = [2 * share - 1 for share in shares]
    elif wanted.distribution == "normal":
        # The import is here, because few links have such slots, and each lab process loads this module.
        from statistics import NormalDist

        places = [NormalDist().inv_cdf(share) for share in shares]
    elif (table := tables.get(wanted.distribution)) is not None:
        places = [table[int(share * len(table))] / SCALE for share in shares]
    else:
        return None
    return [max(0.0, wanted.delay_ns + wanted.jitter_ns * place) + sending_ns for place in places]


def _drawn_ns(mean_ns: int, jitter_ns: int, entries: Iterable[int]) -> list[float]:
    return [mean_ns + jitter_ns * entry / SCALE for entry in entries]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
