"""Lists the sections of the page in order."""

from __future__ import annotations

from reports.sections import (
    answers,
    bounds,
    checks,
    connections,
    course,
    differences,
    explained,
    hosts,
    links,
    machines,
    messages,
    nodes,
    packets,
    paper,
    provenance,
    repetitions,
    transfers,
    trust,
    validation,
)
from reports.sections.section import Section

# The verdict and the answer first, then what changed, then what is busiest, then the evidence.
SECTIONS: tuple[Section, ...] = (
    answers.expect,
    trust.section,
    answers.headline,
    explained.section,
    answers.trials,
    paper.section,
    paper.claims,
    answers.levels,
    differences.section,
    repetitions.section,
    course.interruptions,
    validation.section,
    messages.section,
    bounds.section,
    transfers.section,
    links.section,
    links.topology,
    course.time,
    nodes.section,
    connections.section,
    packets.section,
    checks.proof,
    hosts.section,
    machines.section,
    checks.section,
    provenance.method,
    provenance.section,
    provenance.logs,
    provenance.repeat,
)
