"""Defines the report of a comparison of ten middlewares and 25 serialisers for distributed control (2017), in
three patterns of messages.
"""

from __future__ import annotations

from pathlib import Path

from reports.papers.middleware_2017 import heat, stages, tables
from reports.papers.middleware_2017.gathered import gathered
from reports.papers.middleware_2017.pairs import pair_metrics
from reports.papers.paper import Paper
from reports.papers.published import reference

ROOM = Path(__file__).parent

MIDDLEWARE_2017 = Paper(
    name="middleware_2017",
    title=str(reference(ROOM)["source"]).split(": ", 1)[1],
    source="Smart Grid Communication Comparison, 2017",
    intro="Figures 1 to 6 with our values: the paper's own are in pictures that we do not have, so orders "
    "and the figures of its text are what is compared. Its devices are two Raspberry Pi 3; ours have the "
    "processor of this machine, and the paper's 100 Mbit/s. YAMI4 is not to be had.",
    room=ROOM,
    draws=lambda study: (*heat.SPECS, *stages.SPECS),
    prints=tables.tables,
    measures=pair_metrics,
    gathers=gathered,
)
