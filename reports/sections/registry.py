"""Which sections a page has, in order; each is absent where the study has nothing for it."""

from __future__ import annotations

from reports.sections import (
    bounds,
    claims,
    connections,
    headline,
    interruptions,
    levels,
    links,
    machines,
    messages,
    method,
    nodes,
    packets,
    paper,
    proof,
    provenance,
    repeat,
    time,
    topology,
    transfers,
    trials,
    trust,
    validation,
)
from reports.sections.section import Section

SECTIONS: tuple[Section, ...] = (
    trust.section,
    headline.section,
    proof.section,
    topology.section,
    trials.section,
    messages.section,
    bounds.section,
    interruptions.section,
    validation.section,
    transfers.section,
    links.section,
    nodes.section,
    connections.section,
    packets.section,
    levels.section,
    paper.section,
    claims.section,
    time.section,
    machines.section,
    method.section,
    provenance.section,
    repeat.section,
)
