"""Defines the report of a paper on switched Ethernet in substations, tables 1 to 3: the effect of priority
queues in the end nodes.
"""

from __future__ import annotations

from pathlib import Path

from reports.papers.industrial_ethernet import tables
from reports.papers.paper import Paper
from reports.papers.published import reference

ROOM = Path(__file__).parent

INDUSTRIAL_ETHERNET = Paper(
    name="industrial_ethernet",
    title=str(reference(ROOM)["source"]).split(": ", 1)[1],
    source="industrial Ethernet paper, tables 1 to 3",
    intro="Tables 1 to 3 with the printed values beside ours. A queue stands for the master's transmit "
    "buffer, and a fixed delay, chosen by the printed baseline, for the protocol stacks of then: so the "
    "baseline is no result, what the loads add to it is.",
    room=ROOM,
    draws=lambda study: (),
    prints=tables.tables,
    measures=tables.least_metrics,
)
