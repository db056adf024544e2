"""Defines the report of the first half of the vNET paper (2014): MQTT at three QoS levels, figures 8 to 15
and table II with the values of today's runs.
"""

from __future__ import annotations

from pathlib import Path

from reports.figures.spec import Spec
from reports.papers.paper import Paper
from reports.papers.published import reference
from reports.papers.vnet_2014 import packets, ramp, table_ii
from reports.papers.vnet_2014.publish import publish_metrics
from reports.papers.vnet_2014.shape import MANY, ONE, shape
from reports.study import Study

ROOM = Path(__file__).parent
EVERY: tuple[Spec, ...] = (*ramp.SPECS, *packets.SPECS, table_ii.SPEC)
OTHERS = {
    ONE: ("figure-12", "figure-13"),
    MANY: ("figure-8", "figure-9", "figure-10", "figure-11"),
}


def figures(study: Study) -> tuple[Spec, ...]:
    """Returns all figures for a study of several runs; for a single run, without those of the
    other scenario.
    """
    hidden = OTHERS.get(shape(study.cells[0].run), ()) if study.single else ()
    return tuple(spec for spec in EVERY if spec.key not in hidden)


VNET_2014 = Paper(
    name="vnet_2014",
    title=str(reference(ROOM)["source"]).split(": ", 1)[1],
    source="vNET, 2014",
    intro="Figures 8 to 15 and table II, redrawn. The paper prints few values, so what its text says of each "
    "figure stands below it, with a verdict.",
    room=ROOM,
    draws=figures,
    prints=table_ii.tables,
    measures=publish_metrics,
)
