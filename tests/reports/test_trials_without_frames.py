"""Tests that trials in which no frame was sent have no share of lost frames."""

from __future__ import annotations

import polars as pl

from reports.metrics.metric import Of
from reports.metrics.trials import _loss


def trials(*sent_and_lost: tuple[int, int]) -> pl.DataFrame:
    """Returns trials at 100, 200, ... frames/s."""
    return pl.DataFrame(
        [
            {"rate_fps": 100 * n, "offered_fps": 100 * n, "sent": sent, "lost": lost}
            for n, (sent, lost) in enumerate(sent_and_lost, 1)
        ]
    )


def test_the_share_is_that_of_the_highest_load() -> None:
    (found,) = _loss(Of(), trials((100, 0), (200, 50)))
    assert (found.value, found.n) == (25, 200)


def test_no_frame_is_no_share() -> None:
    """Shows that a share of no frames is unknown, not 0 %."""
    assert _loss(Of(), trials((100, 0), (0, 0))) == []
