"""Computes the highest frame rate of an Ethernet for a frame size, which includes the check sequence."""

from __future__ import annotations

# Preamble, start delimiter and the gap between frames take the time of 20 bytes (IEEE 802.3).
GAP_BYTES = 20
FCS_BYTES = 4


def line_fps(size: int, rate_bps: float) -> float:
    """Returns the frames a second of `size` bytes (check sequence included) on a wire of that rate: RFC
    2544's theoretical maximum.
    """
    return rate_bps / (8 * (size + GAP_BYTES))


def shaped_fps(size: int, rate_bps: float) -> float:
    """Returns the frames a second of `size` bytes (check sequence included) through netem's rate, which
    counts frames without check sequence, preamble and gap.
    """
    return rate_bps / (8 * (size - FCS_BYTES))
