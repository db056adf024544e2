"""Calculates figure 4.2: the phasor channels that a serial line carries, and compares them with the printed
ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from reports.metrics.metric import Metric, Of, count
from reports.papers.paper import Table
from reports.papers.published import reference
from reports.study import Study

ROOM = Path(__file__).parent
BITS = 10  # bits of a byte on the line, with its start and stop bit
# Bytes of a data frame of IEEE C37.118 without channels: SYNC, FRAMESIZE, IDCODE, SOC, FRACSEC, STAT, FREQ,
# DFREQ and CHK, with 16-bit values and neither analog nor digital channels.
FRAME = 2 + 2 + 2 + 4 + 4 + 2 + 2 + 2 + 2
PHASOR = 4  # bytes of a phasor: two 16-bit values
MOST = 12  # channels of the unit in the figure
EQUAL = "ccc_channels_equal"


def channels(baud: int, rate: float, most: int = MOST) -> int:
    """Returns the number of phasor channels of a unit with at most `most` of them that a serial line of
    `baud` bit/s carries at `rate` data frames a second. ValueError if a number is not above zero.
    """
    if min(baud, rate, most) <= 0:
        raise ValueError(f"{baud} bit/s, {rate} frames/s, {most} channels: all are above zero")
    room = baud / BITS / rate - FRAME
    return max(0, min(most, int(room // PHASOR)))


def printed() -> dict[tuple[int, int], int]:
    """Returns the printed number of channels by baud rate and reporting rate."""
    figure = reference(ROOM)["figure_4_2"]
    return {
        (baud, rate): value
        for baud, row in figure["channels"].items()
        for rate, value in zip(figure["rates"], row, strict=True)
    }


def equal() -> int:
    """Returns how many of the figure's numbers equal those that `channels` calculates."""
    return sum(channels(baud, rate) == value for (baud, rate), value in printed().items())


def gathered(study: Study) -> Iterator[tuple[bool, Metric]]:
    """Yields how many of the figure's cells are calculated as printed; this needs no run."""
    yield True, count(EQUAL, Of(), equal(), f"of {len(printed())} numbers", len(printed()), "calculated")


def table() -> Table:
    """Returns figure 4.2 as calculated; if the printed number differs, it stands in brackets."""
    known = printed()
    bauds, rates = ({one[place]: None for one in known} for place in (0, 1))
    cells: dict[int, list[str]] = {baud: [] for baud in bauds}
    for baud, rate in product(bauds, rates):
        ours, theirs = channels(baud, rate), known[baud, rate]
        cells[baud].append(f"{ours}" if ours == theirs else f"{ours} ({theirs})")
    rows = tuple((f"{baud:,} bit/s", *row) for baud, row in cells.items())
    caption = (
        "Figure 4.2, calculated: phasor channels of a unit with twelve, by the line's baud rate and the data "
        f"frames a second. A byte takes {BITS} bits, a frame {FRAME} bytes and {PHASOR} for each channel."
    )
    return Table("", caption, ("channels", *(f"{rate} /s" for rate in rates)), rows)
