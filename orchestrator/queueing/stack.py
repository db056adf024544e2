"""Stacks the qdiscs of a direction with a queue of a stated kind: netem for delay and losses, then the rate,
then the queue.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from contract.plan import Impairment

from . import netem, shaper, words
from .discipline import DELAY, RATE, Part, Place, QueueKind, entry
from .kind import Entry, Mismatch
from .tbf import RATE_TOLERANCE_BPS, bucket_bytes

HIGHEST_LIMIT = 2**32 - 1  # netem's limit has 32 bits


@dataclass(frozen=True, slots=True)
class Stack:
    """The qdiscs of a direction with a queue. `delays`: True if netem is the topmost qdisc; `steered`: True
    if a trace changes the rate.
    """

    queue_kind: QueueKind
    delays: bool
    steered: bool = False

    @property
    def kind(self) -> str:
        return "netem" if self.delays else self._rated

    @property
    def _rated(self) -> str:
        """Returns tc's name of the qdisc that limits the rate."""
        return shaper.KIND if self.steered and not self.queue_kind.shapes else self.queue_kind.root

    def takes(self, before: Impairment, after: Impairment) -> bool:
        if self.delays and not netem.QUEUE.takes(self._above(before), self._above(after)):
            return False
        return self.queue_kind.changes(before, after, self._bottom("")) is not None

    def lines(self, device: str, before: Impairment, after: Impairment) -> list[str]:
        found = netem.QUEUE.lines(device, self._above(before), self._above(after)) if self.delays else []
        if not self.queue_kind.shapes and self.steered:
            found += [shaper.qdisc(self._top(device), RATE)] if before.queue is None else []
            found.append(shaper.rate(device, RATE, after))
        elif not self.queue_kind.shapes:
            found.append(self._top(device).qdisc(RATE, _bucket(after)))
        at = self._bottom(device)
        changes = self.queue_kind.changes(before, after, at) if before.queue is not None else None
        return found + (self.queue_kind.lines(after, at) if changes is None else changes)

    def forget(self, device: str, wanted: Impairment) -> list[str]:
        """Returns tc lines that reset the part of the queue's state that depends on past packets."""
        return self.queue_kind.forget(wanted, self._bottom(device))

    def parts(self, wanted: Impairment) -> tuple[Part, ...]:
        """Returns the queues with counters of their own."""
        return self.queue_kind.parts(wanted)

    def read(self, entries: Sequence[Entry], like: Impairment) -> Impairment:
        """Returns the impairment read back. netem's part is the value read, and so is the rate if a token
        bucket limits it; otherwise the rate is that of `like`. The queue is that of `like` if nothing
        differs, else None.
        """
        netems = self._above(like)
        top = netem.QUEUE.read(entries, netems) if self.delays else Impairment()
        below = like.queue if not self._below(like, entries) else None
        shaped = self.queue_kind.shapes or self.steered
        rate = like.rate_bps if shaped else 8 * _rate(entries)
        more = top.limit_packets - netems.limit_packets if self.delays else 0
        return dataclasses.replace(
            top, rate_bps=rate, limit_packets=like.limit_packets + more, frame_bytes=like.frame_bytes,
            queue=below, netem_stays=like.netem_stays, backpressure=like.backpressure,
        )  # fmt: skip

    def mismatches(self, asked: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        found = netem.QUEUE.mismatches(self._above(asked), entries) if self.delays else []
        if not self.queue_kind.shapes and not self.steered:
            rate = 8 * _rate(entries)
            if abs(rate - asked.rate_bps) > RATE_TOLERANCE_BPS + 1e-5 * asked.rate_bps:
                found.append(("rate_bps", asked.rate_bps, rate))
        return found + self._below(asked, entries)

    def _below(self, asked: Impairment, entries: Sequence[Entry]) -> list[Mismatch]:
        """Returns the mismatches of the queue and, if a trace changes the rate, of the class that limits the
        rate.
        """
        class_ = self.steered and not self.queue_kind.shapes
        found = shaper.mismatches(RATE, asked, entries) if class_ else []
        return found + self.queue_kind.mismatches(asked, entries)

    def sending_ns(self, wanted: Impairment, frame_bytes: int) -> int:
        return 0  # the bucket has tokens when a lone frame arrives

    def at_once_bytes(self, wanted: Impairment) -> int:
        if self.queue_kind.shapes:
            return self.queue_kind.at_once_bytes(wanted)
        return bucket_bytes(wanted.rate_bps, wanted.frame_bytes)

    def lone_bps(self, wanted: Impairment) -> int:
        return self.queue_kind.lone_bps(wanted)

    def _above(self, wanted: Impairment) -> Impairment:
        """Returns the part of the impairment that netem applies.

        Without a delay netem stays, at a rate that delays nothing, because it removes packets from their
        sockets' account. Its limit also counts the packets in the queue below (sch->q.qlen in netem_enqueue)
        and the packet that tbf has taken. Their number is therefore added to the limit. Otherwise netem would
        drop packets of every class while the queue of one class is long, and the others would get less than
        their guarantee.
        """
        below = self.queue_kind.packets(wanted) + 1 if wanted.queue is not None else 0
        return dataclasses.replace(
            wanted, rate_bps=0, queue=None, netem_stays=wanted.netem_stays or not wanted.delay_ns,
            limit_packets=min(wanted.limit_packets + below, HIGHEST_LIMIT),
        )  # fmt: skip

    def _top(self, device: str) -> Place:
        return Place(device, f"parent {DELAY}1" if self.delays else "root")

    def _bottom(self, device: str) -> Place:
        top = self._top(device)
        if self.queue_kind.shapes:
            return top
        return shaper.below(top, RATE) if self.steered else top.below(RATE)


def _bucket(wanted: Impairment) -> str:
    """Returns tc's words for the token bucket. tc requires a limit, which has no effect, since the queue
    below replaces the bucket's own.
    """
    burst = bucket_bytes(wanted.rate_bps, wanted.frame_bytes)
    return f"tbf rate {words.bits(wanted.rate_bps)} burst {burst} limit {burst}"


def _rate(entries: Sequence[Entry]) -> int:
    return int(entry(entries, RATE).get("options", {}).get("rate", 0))
