"""Checks the campaign block: factors are declared parameters, and no parameter is also a factor."""

from __future__ import annotations

from .report import Report


def check(report: Report) -> None:
    """Reports factors and parameters of the campaign block that are not declared, unless it names topologies,
    and names that are both; the levels are checked when the cells are loaded.
    """
    block = report.model.campaign
    if block is None:
        return
    known = report.declared("parameters")
    for key in ("factors", "parameters"):
        for name in getattr(block, key):
            if block.topologies is None and name not in known:
                report.unknown(("campaign", key, name), name, "parameter", known)
    for name in block.factors.keys() & block.parameters.keys():
        report.add(("campaign", "parameters", name), None, "is a factor already", "remove one of them")
