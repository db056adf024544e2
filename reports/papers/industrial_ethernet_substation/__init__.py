"""Defines the report of a paper that simulates substations on switched Ethernet, figures 3, 5, 6 and 7: a
flat network and ten bays.
"""

from __future__ import annotations

from pathlib import Path

from reports.papers.industrial_ethernet_substation.arithmetic import gathered
from reports.papers.industrial_ethernet_substation.delays import delay_metrics
from reports.papers.industrial_ethernet_substation.figures import SPEC
from reports.papers.industrial_ethernet_substation.tables import tables
from reports.papers.paper import Paper
from reports.papers.published import reference

ROOM = Path(__file__).parent

INDUSTRIAL_ETHERNET_SUBSTATION = Paper(
    name="industrial_ethernet_substation",
    title=str(reference(ROOM)["source"]).split(": ", 1)[1],
    source="industrial Ethernet paper, figures 3, 5, 6 and 7",
    intro="The paper simulated them (OPNET); its figures are drawings, so what its text says of them stands "
    "beside ours. A protocol stack is a link that takes packets one after the other. TCP is Linux's, with "
    "windows of today: delays beside files are its own.",
    room=ROOM,
    draws=lambda study: (SPEC,),
    prints=tables,
    measures=delay_metrics,
    gathers=gathered,
)
