"""Gives access to the packets of one capture point: a frame with one row for each, and pyshark's dissection
of the kept pcap.
"""

from __future__ import annotations

import asyncio
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
        _insist(display_filter)
        return _dissected(self.pcap, display_filter)


def _insist(display_filter: str) -> None:
    """Raises LoadError if tshark refuses the filter, tested with an empty capture, or is not installed.

    pyshark may lose tshark's error, so the filter is tested without pyshark.
    """
    with tempfile.NamedTemporaryFile(suffix=".pcap") as empty:
        empty.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        empty.flush()
        argv = ["tshark", "-n", "-r", empty.name, "-Y", display_filter]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise LoadError("tshark: is not installed; dissection needs it: apt-get install tshark") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise LoadError(f"display filter {display_filter!r}: tshark refuses it: {said[-1]}")


def _dissected(pcap: Path, display_filter: str) -> Iterator[Any]:
    """Yields pyshark's packets from another thread, because pyshark runs an event loop of its own and a
    notebook's thread already has one.

    LoadError at the end if tshark could not read all of the pcap.
    """
    import pyshark  # type: ignore[import-untyped]  # slow to load, and needed here only

    def begin() -> tuple[Any, Iterator[Any]]:
        asyncio.set_event_loop(asyncio.new_event_loop())
        capture = pyshark.FileCapture(str(pcap), display_filter=display_filter or None, keep_packets=False)
        return capture, iter(capture)

    with ThreadPoolExecutor(1) as worker:
        capture, packets = worker.submit(begin).result()
        ended = False
        try:
            while (packet := worker.submit(next, packets, None).result()) is not None:
                yield packet
            ended = True
        finally:
            failure = worker.submit(_let_go, capture).result()
        if ended and failure:
            raise LoadError(f"{pcap}: tshark could not read all of it: {failure}")


def _let_go(capture: Any) -> str | None:
    """Closes the capture; returns pyshark's error if tshark failed, else None, also if tshark's exit status
    is lost.
    """
    from pyshark.capture.capture import TSharkCrashException  # type: ignore[import-untyped]

    try:
        capture.close()
    except TSharkCrashException as error:
        # asyncio's 255: another waiter (pyshark's transport) reaped the process, its status is lost
        return None if "(retcode: 255)" in str(error) else str(error)
    finally:
        capture._running_processes.clear()  # else pyshark closes it again and warns, at garbage collection
        asyncio.get_event_loop().close()
    return None
