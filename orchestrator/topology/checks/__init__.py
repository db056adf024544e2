"""Runs the checks that involve several values of a topology: references, addresses, combinations."""

from __future__ import annotations

from ...language.source import Document
from ..document import File
from . import (
    expect,
    half_duplex,
    hosts,
    hunt,
    impairments,
    links,
    machines,
    names,
    nics,
    queues,
    references,
    routes,
    segments,
    software,
    timeline,
    traces,
    trunks,
    vlans,
    vrfs,
)
from .report import Report

_CHECKS = (
    names.check,
    machines.check,
    links.check,
    half_duplex.check,
    segments.check,
    routes.check,
    nics.check,
    hosts.check,
    vlans.check,
    vrfs.check,
    impairments.check,
    queues.check,
    traces.check,
    trunks.check,
    software.check,
    references.check_captures,
    timeline.check,
    hunt.check,
    references.check_campaign,
    expect.check,
)


def check(document: Document, model: File, parameters: dict[str, object], refused: frozenset[str]) -> Report:
    """Runs all checks on a model and returns the report; `refused` are the paths of
    problems found earlier.
    """
    report = Report(document, model, parameters, refused)
    for rule in _CHECKS:
        rule(report)
    return report
