"""Trials of a path: a receiver that can be reached, frames that fit, tests that make sense together."""

from __future__ import annotations

from ...language.source import Path
from ..frames import Frames, FramesOptions
from ..network import Machine
from .report import Report

HEADER_AND_FCS = 18  # bytes of a frame that its interface's MTU does not count
LONGEST_TRIAL_NS = 3600 * 10**9


def check(report: Report) -> None:
    """Every test of every node."""
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            for label, software in machine.software.items():
                if isinstance(software, Frames):
                    path = (section, name, "software", label, "frames")
                    if section == "groups":
                        rule = "trials run one after another, between two nodes"
                        report.add(path[:-1], None, rule, "put it on a node under `nodes`")
                    _test(report, name, machine, software.frames, path)


def _test(report: Report, node: str, machine: Machine, wanted: FramesOptions, path: Path) -> None:
    _receiver(report, node, machine, wanted, (*path, "to"))
    if "latency" in wanted.tests and "throughput" not in wanted.tests:
        rule = "latency is measured at the throughput that was found (RFC 2544, section 26.2)"
        report.add((*path, "tests"), None, rule, "add throughput")
    if len(set(wanted.tests)) < len(wanted.tests):
        report.add((*path, "tests"), None, "names a test twice", "name each test once")
    for key, least in (("trial", 10**7), ("latency_trial", 10**7), ("burst", 10**6)):
        value = getattr(wanted, key)
        if value is not None and not least <= value <= LONGEST_TRIAL_NS:
            report.add(
                (*path, key), None, f"must be from {least // 10**6} ms to 1 h", 'write for example "60 s"'
            )
    for key, low, high in (("resolution", 0.001, 0.5), ("loss_step", 0.01, 0.1)):
        if not low <= getattr(wanted, key) <= high:
            report.add((*path, key), None, f"must be from {low:.1%} to {high:.0%}", 'write for example "1 %"')
    if wanted.line_rate <= 0:
        report.add((*path, "line_rate"), None, "must be more than zero", 'write for example "1 Gbit/s"')


def _receiver(report: Report, node: str, machine: Machine, wanted: FramesOptions, path: Path) -> None:
    if wanted.to in report.broken("nodes"):
        return
    other = report.names.nodes.get(wanted.to)
    if other is None:
        report.unknown(path, wanted.to, "node", set(report.names.nodes) | report.declared("nodes"))
        return
    if wanted.to == node:
        report.add(path, wanted.to, "a node does not send to itself", "name another node")
        return
    ours, theirs = (_reach(report, m) for m in (machine, other))
    if ours and theirs and not ours & theirs and not report.unsure("links", "between"):
        rule = "no segment or link joins the two nodes"
        report.add(path, wanted.to, rule, "add a link between their segments")
    mtus = [report.model.segments[s].mtu for s in ours & theirs if s in report.model.segments]
    if mtus and max(wanted.sizes) > min(mtus) + HEADER_AND_FCS:
        rule = f"frames of {max(wanted.sizes)} bytes do not fit the segments' MTU of {min(mtus)}"
        remedy = f"write a larger `mtu` there, or sizes of at most {min(mtus) + HEADER_AND_FCS}"
        report.add((*path[:-1], "sizes"), None, rule, remedy)


def _reach(report: Report, machine: Machine) -> set[str]:
    found = [report.domains[name].segments for name in machine.segment if name in report.domains]
    return {name for segments in found for name in segments}
