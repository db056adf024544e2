"""Defines the report of the second half of the vNET paper (2014): figures 17 to 19 and tables VI and VII,
with the values of today's runs of interaction models on two networks.
"""

from __future__ import annotations

from pathlib import Path

from reports.papers.paper import Paper
from reports.papers.published import reference
from reports.papers.vnet_2014_models import figures, tables
from reports.papers.vnet_2014_models.wire import wire_metrics

ROOM = Path(__file__).parent

VNET_2014_MODELS = Paper(
    name="vnet_2014_models",
    title=str(reference(ROOM)["source"]).split(": ", 1)[1],
    source="vNET, 2014, sections IV and V",
    intro="Tables VI and VII with the printed values beside ours, figures 17 to 19 in per cent of what UDP "
    "takes on the same network. Data counts from the first update to the end of the run, where it is sent, "
    "before the bridge.",
    room=ROOM,
    draws=lambda study: figures.SPECS,
    prints=tables.tables,
    measures=wire_metrics,
)
