"""Checks the trials of a path: a reachable receiver, frames that fit the MTU, and settings that go
together.
"""

from __future__ import annotations

from ...language.source import Path
from ..checking import Checks, Here
from .file import Frames, FramesOptions

HEADER_AND_FCS = 18  # bytes of a frame that its interface's MTU does not count
LONGEST_TRIAL_NS = 3600 * 10**9


def check(report: Checks, here: Here, software: Frames) -> None:
    """Reports an RFC 2544 test in a group, a receiver that does not exist, is the node itself or is on no
    common segment, frames longer than the MTU, latency without throughput, a test named twice, and settings
    out of range.
    """
    wanted, path = software.frames, (*here.path, "frames")
    if here.in_group:
        rule = "trials run one after another, between two nodes"
        report.add(here.path, None, rule, "put it on a node under `nodes`")
    _receiver(report, here, wanted, (*path, "to"))
    if "latency" in wanted.tests and "throughput" not in wanted.tests:
        rule = "latency is measured at the throughput that was found (RFC 2544, section 26.2)"
        report.add((*path, "tests"), None, rule, "add throughput")
    if len(set(wanted.tests)) < len(wanted.tests):
        report.add((*path, "tests"), None, "names a test twice", "name each test once")
    for key, least in (("trial", 10**7), ("latency_trial", 10**7), ("burst", 10**6)):
        value = getattr(wanted, key)
        if value is not None and not least <= value <= LONGEST_TRIAL_NS:
            rule = f"must be from {least // 10**6} ms to 1 h"
            report.add((*path, key), None, rule, 'write for example "60 s"')
    for key, low, high in (("resolution", 0.001, 0.5), ("loss_step", 0.01, 0.1)):
        if not low <= getattr(wanted, key) <= high:
            report.add((*path, key), None, f"must be from {low:.1%} to {high:.0%}", 'write for example "1 %"')
    if wanted.line_rate <= 0:
        report.add((*path, "line_rate"), None, "must be more than zero", 'write for example "1 Gbit/s"')


def _receiver(report: Checks, here: Here, wanted: FramesOptions, path: Path) -> None:
    if not report.node(path, wanted.to):
        return
    if wanted.to in here.nodes:
        report.add(path, wanted.to, "a node does not send to itself", "name another node")
        return
    common = report.common(here.segments, wanted.to)
    if common == set():
        rule = "no segment or link joins the two nodes"
        report.add(path, wanted.to, rule, "add a link between their segments")
    mtus = [mtu for name in common or () if (mtu := report.mtu(name)) is not None]
    if mtus and max(wanted.sizes) > min(mtus) + HEADER_AND_FCS:
        rule = f"frames of {max(wanted.sizes)} bytes do not fit the segments' MTU of {min(mtus)}"
        remedy = f"write a larger `mtu` there, or sizes of at most {min(mtus) + HEADER_AND_FCS}"
        report.add((*path[:-1], "sizes"), None, rule, remedy)
