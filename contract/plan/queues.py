"""Defines the queue for packets that exceed the rate of a direction.

Imports the standard library only: the lab process reads it inside the lab's kernel. The kinds of queue are
not listed here: a kind's own module defines which settings it has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..codec import RARE


@dataclass(frozen=True, slots=True)
class Band:
    """Packets that queue together, selected by any of these fields; without any, all remaining packets."""

    name: str
    pcp: tuple[int, ...] = ()  # priority code points of 802.1Q, 0 to 7
    dscp: tuple[int, ...] = ()  # DSCP of IPv4 and IPv6, 0 to 63
    ports: tuple[int, ...] = ()  # ports of TCP and UDP over IPv4, on either side
    limit_packets: int = 0
    rate_bps: int = 0  # guaranteed, in kinds whose bands have rates
    ceil_bps: int = 0  # highest rate while other bands leave some unused, in the same kinds
    ahead: bool = field(default=False, metadata=RARE)  # served before the others, in the same kinds

    @property
    def rest(self) -> bool:
        return not (self.pcp or self.dscp or self.ports)


@dataclass(frozen=True, slots=True)
class Discipline:
    """A queue of one kind."""

    kind: str  # the kind's name in topology files
    # Numbers, texts and flags, by the kind's own names.
    settings: dict[str, Any] = field(default_factory=dict, hash=False)
    bands: tuple[Band, ...] = ()  # in the order in which packets are matched; of kinds that have bands
    steered: bool = False  # True if a trace changes the direction's rate while packets wait
    least_bytes: int = 0  # size as which shorter frames count, so that no burst builds up (a trace)

    @staticmethod
    def earlier(data: dict[str, Any]) -> dict[str, Any]:
        """Returns the JSON data of a queue in today's form. Plans used to have a field for each kind, null
        but for one, whose value was an object with the settings, or with the bands as `bands` or `classes`.
        """
        if "kind" in data:
            return data
        kept: dict[str, Any] = {name: data[name] for name in ("steered", "least_bytes") if name in data}
        kind, found = next((k, v) for k, v in data.items() if k not in kept and v is not None)
        bands = [band for name in ("bands", "classes") for band in found.get(name, ())]
        return {"kind": kind, "settings": {} if bands else found, "bands": bands, **kept}
