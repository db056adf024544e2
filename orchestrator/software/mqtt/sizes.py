"""Checks and plans payloads whose lengths differ from message to message."""

from __future__ import annotations

import math
from collections.abc import Sequence

from contract.plan import Payload, Sizes

from ...language.source import Path
from ..checking import Checks
from .file import PayloadSizes, Publish

# Lengths in bytes: flow, number and time at fixed positions, and the XML around them (the agent's
# payload/metering_xml.rs).
SMALLEST_XML = 548
SMALLEST_BYTES = 28  # bytes of the header with flow, number and time (the agent's payload/bytes.rs)
LARGEST_PAYLOAD = 1 << 20
_SMALLEST = {"metering-xml": SMALLEST_XML, "bytes": SMALLEST_BYTES}
_HALVINGS = 200  # how often an interval is halved: more often than a double has bits


def check_sizes(report: Checks, wanted: Publish, path: Path, texts: Sequence[str]) -> None:
    """Reports lengths that the payload cannot have, bounds out of order, a mean that an exponential
    distribution between them cannot have, and keys of another payload (`texts`, `payload_size`).
    """
    sizes = wanted.payload_sizes
    assert sizes is not None
    others = [*texts, *(["payload_size"] if "payload_size" in wanted.model_fields_set else [])]
    for key in others:
        report.add(path, None, f"conflicts with `{key}`", "leave one of them out")
    smallest = _SMALLEST[wanted.payload]
    if not smallest <= sizes.least <= sizes.most <= LARGEST_PAYLOAD:
        rule = f"lengths of {wanted.payload} go from {smallest} to {LARGEST_PAYLOAD} bytes, `min` first"
        report.add((*path, "min"), f"{sizes.least} B", rule, 'write for example {min: "600 B", max: "2 kB"}')
        return
    if sizes.mean is not None and not sizes.least < sizes.mean < (sizes.least + sizes.most) / 2:
        rule = f"must be above `min`, and below the middle, {(sizes.least + sizes.most) / 2:g} B"
        report.add((*path, "mean"), f"{sizes.mean} B", rule, "leave it out for equally likely lengths")


def sized(kind: str, wanted: PayloadSizes, seed: int) -> Payload:
    """Returns the payload in the plan; its length is the mean."""
    middle = (wanted.least + wanted.most) // 2
    if wanted.mean is None:
        return Payload(kind, middle, Sizes(wanted.least, wanted.most, seed))
    scale = _scale(wanted.mean - wanted.least, wanted.most - wanted.least)
    return Payload(kind, wanted.mean, Sizes(wanted.least, wanted.most, seed, scale))


def _scale(mean: float, most: float) -> float:
    """Returns the scale of the exponential distribution on 0 to `most` that has this mean, which must be
    below the half of `most`.

    The mean is scale - most / (exp(most / scale) - 1), which grows with the scale up to the half of `most`.
    """
    low, high = mean, mean
    while _mean(high, most) < mean:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(middle, most) < mean else (low, middle)
    return high


def _mean(scale: float, most: float) -> float:
    ratio = most / scale
    # exp of a larger number exceeds a double
    return scale - (most / math.expm1(ratio) if ratio < 700 else 0.0)
