"""Defines reservations, and computes whether one fits beside others, and from when on. Does not examine any
machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.language.dates import date_text

GB = 1e9


class ReservationError(Exception):
    """Raised if a reservation cannot be made, ended or kept; the text gives the place, the reason and a
    remedy.
    """


@dataclass(frozen=True, slots=True)
class Amount:
    """Cores, memory in bytes, and NICs by their keys (orchestrator.nics.model)."""

    cores: float = 0.0
    memory_bytes: int = 0
    nics: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"{self.cores:g} cores"] if self.cores else []
        parts += [f"{self.memory_bytes / GB:.1f} GB of memory"] if self.memory_bytes else []
        return ", ".join([*parts, *(f"NIC {nic}" for nic in self.nics)])


@dataclass(frozen=True, slots=True)
class Reservation:
    """An amount that one account has reserved from `start_ns` until before `end_ns` (Unix ns)."""

    name: str
    uid: int
    account: str
    amount: Amount
    start_ns: int
    end_ns: int
    note: str = ""

    def at(self, now_ns: int) -> bool:
        """Returns whether the reservation holds at a moment."""
        return self.start_ns <= now_ns < self.end_ns

    def __str__(self) -> str:
        why = f" ({self.note})" if self.note else ""
        times = f"from {date_text(self.start_ns)} until {date_text(self.end_ns)}"
        return f"{self.name} of {self.account}{why}: {self.amount}, {times}"


def lacking(want: Amount, machine: Amount, others: Sequence[Reservation]) -> list[str]:
    """Returns a sentence for each resource of which the machine's cores and memory are too small for `want`
    and `others` together; all of `others` hold at one moment.
    """
    return list(_lacking(want, machine, others))


def _lacking(want: Amount, machine: Amount, others: Sequence[Reservation]) -> Iterator[str]:
    cores = sum(other.amount.cores for other in others)
    if want.cores and cores + want.cores > machine.cores:
        yield f"{want.cores:g} cores wanted, {cores:g} of {machine.cores:g} are reserved"
    memory = sum(other.amount.memory_bytes for other in others)
    if want.memory_bytes and memory + want.memory_bytes > machine.memory_bytes:
        yield (
            f"{want.memory_bytes / GB:.1f} GB of memory wanted, {memory / GB:.1f} of "
            f"{machine.memory_bytes / GB:.1f} GB are reserved"
        )
    for nic in want.nics:
        if any(nic in other.amount.nics for other in others):
            yield f"NIC {nic} is reserved"


def sharing(want: Amount, others: Iterable[Reservation]) -> list[Reservation]:
    """Returns the reservations that hold a resource of a kind that `want` needs."""
    return [
        other
        for other in others
        if (want.cores and other.amount.cores)
        or (want.memory_bytes and other.amount.memory_bytes)
        or set(want.nics) & set(other.amount.nics)
    ]


def clashes(new: Reservation, machine: Amount, others: Sequence[Reservation]) -> list[str]:
    """Returns the lacking resources at the first moment at which the new reservation does not fit, with the
    reservations that hold them at that time; an empty list if the reservation always fits.
    """
    later = (o.start_ns for o in others if new.start_ns < o.start_ns < new.end_ns)
    for moment in sorted({new.start_ns, *later}):
        held = [other for other in others if other.at(moment)]
        if found := lacking(new.amount, machine, held):
            return found + [str(other) for other in sharing(new.amount, held)]
    return []


def starts(new: Reservation, others: Iterable[Reservation]) -> list[int]:
    """Returns the moments (Unix ns) at which resources may become free: the wished start, and the ends of
    other reservations after it, in order.
    """
    return sorted({new.start_ns, *(other.end_ns for other in others if other.end_ns > new.start_ns)})
