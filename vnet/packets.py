"""Gives access to the packets of one capture point: a frame with one row for each, and pyshark's dissection
of the kept pcap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from .errors import LoadError


@dataclass(frozen=True)
class Packets:
    """The packets of one capture point; `frame` is lazy, because a capture can hold millions of packets."""

    point: str
    frame: pl.LazyFrame
    pcap: Path

    def collect(self) -> pl.DataFrame:
        """Reads all rows of `frame` into memory."""
        return self.frame.collect()

    def dissect(self, display_filter: str = "") -> Iterator[Any]:
        """Yields each packet that a Wireshark display filter accepts, as a pyshark object, in order; without
        a filter, all packets.

        It is far slower than `frame` and meant for single packets. LoadError if the pcap was not kept, if
        tshark is not installed or refuses the filter, or if it cannot read the pcap to its end.
        """
        if not self.pcap.exists():
            rule = "the capture was not kept; `frame` has what the reduction saw of it"
            raise LoadError(f"{self.pcap}: is not there: {rule}")
        from capture.deep import dissected  # imported here because it is slow and rarely needed

        return _told(partial(dissected, self.pcap, display_filter))


def _told(begin: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Starts the dissection now, so that its errors come here, and returns the packets; errors of the
    dissection become a LoadError.
    """
    from capture.errors import CaptureError

    def packets(found: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from found
        except CaptureError as error:
            raise LoadError(str(error)) from error

    try:
        return packets(begin())
    except CaptureError as error:
        raise LoadError(str(error)) from error
