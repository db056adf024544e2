"""Plans RFC 2544 tests of a path: their two interfaces, and whether the sender bypasses the qdisc of
its NIC.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from contract.plan import Software

from ..kind import Planned
from ..scene import Placed, Scene
from .file import FramesOptions
from .trials import Frames


def plan(scene: Scene, tests: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every RFC 2544 test of the lab."""
    for placed in tests:
        spec = json.loads(json.dumps(asdict(_trials(scene, placed.node, placed.model.frames))))
        yield Planned(Software(placed.name, "utility", placed.kind, spec=spec))


def _trials(scene: Scene, node: str, wanted: FramesOptions) -> Frames:
    """Returns the trials from `node`; relies on the checks that the two nodes share a segment or a link.
    Frames bypass the qdisc of the node's interface if that is a NIC without an impairment.
    """
    ours, theirs = scene.ends(node, wanted.to)
    return Frames(
        to=wanted.to,
        interface=ours.name,
        to_interface=theirs.name,
        sizes=tuple(sorted(set(wanted.sizes))),
        tests=tuple(wanted.tests),
        line_rate_bps=wanted.line_rate,
        path_rate_bps=scene.bottleneck_bps(node, wanted.to),
        trial_ns=wanted.trial,
        settle_ns=wanted.settle,
        resolution=wanted.resolution,
        tolerate=wanted.tolerate,
        loss_step=wanted.loss_step,
        latency_trials=wanted.latency_trials,
        latency_trial_ns=wanted.latency_trial or wanted.trial,
        burst_ns=wanted.burst,
        burst_trials=wanted.burst_trials,
        bypass=ours.nic is not None and not _impaired(scene, node, ours.segment),
    )


def _impaired(scene: Scene, node: str, segment: str) -> bool:
    """Returns whether the qdisc of the node's own interface on the segment carries an impairment."""
    return any(
        link.forward.impairment.present
        for link in scene.links
        if link.kind == "access" and (link.a, link.b) == (node, segment)
    )
