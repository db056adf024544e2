"""Defines the kinds of queues for packets that exceed the rate of a direction.

Imports the standard library only: the lab process reads it inside the lab's kernel.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Band:
    """Packets that queue together, selected by any of these fields; without any, all remaining packets."""

    name: str
    pcp: tuple[int, ...] = ()  # priority code points of 802.1Q, 0 to 7
    dscp: tuple[int, ...] = ()  # of IPv4 and IPv6, 0 to 63
    ports: tuple[int, ...] = ()  # of TCP and UDP over IPv4, on either side
    limit_packets: int = 0
    rate_bps: int = 0  # htb: guaranteed
    ceil_bps: int = 0  # htb: most that it may borrow up to

    @property
    def rest(self) -> bool:
        return not (self.pcp or self.dscp or self.ports)


@dataclass(frozen=True, slots=True)
class Prio:
    """Strict priority: the first band is always served first."""

    bands: tuple[Band, ...]


@dataclass(frozen=True, slots=True)
class Htb:
    """Hierarchical token bucket: classes with guaranteed and ceiling rates that borrow what others leave."""

    classes: tuple[Band, ...]


@dataclass(frozen=True, slots=True)
class Red:
    """Random early detection (Floyd and Jacobson 1993): drops or marks between two mean queue lengths."""

    min_bytes: int
    max_bytes: int
    limit_bytes: int
    probability: float  # at max_bytes
    ecn: bool


@dataclass(frozen=True, slots=True)
class FqCodel:
    """RFC 8290."""

    limit_packets: int
    flows: int
    target_ns: int
    interval_ns: int
    ecn: bool


@dataclass(frozen=True, slots=True)
class Cake:
    """Common applications kept enhanced; tc-cake(8)."""

    isolation: str  # flowmode of tc: triple-isolate, flows, dual-dsthost ...
    diffserv: str  # besteffort, diffserv3, diffserv4, diffserv8
    rtt_ns: int


@dataclass(frozen=True, slots=True)
class Fifo:
    """First in, first out, behind a rate that changes under the packets which wait."""

    limit_packets: int


@dataclass(frozen=True, slots=True)
class Discipline:
    """Exactly one kind; its field's name is that of the kind. The last two are a trace's."""

    prio: Prio | None = None
    htb: Htb | None = None
    red: Red | None = None
    fq_codel: FqCodel | None = None
    cake: Cake | None = None
    fifo: Fifo | None = None
    steered: bool = False  # its rate changes under the packets which wait
    least_bytes: int = 0  # as which shorter frames count; with it nothing is saved up for a burst

    @property
    def kind(self) -> str:
        return next(name for name in self.__slots__ if getattr(self, name) is not None)

    @property
    def bands(self) -> tuple[Band, ...]:
        """The bands of `prio` or the classes of `htb`; empty for other kinds."""
        if self.prio is not None:
            return self.prio.bands
        return self.htb.classes if self.htb is not None else ()
