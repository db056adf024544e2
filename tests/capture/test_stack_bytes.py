"""Tests frames that a bridge floods to nodes to which they are not addressed: interfaces count them, network
stacks do not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conserved import RATE, SECONDS, agreeing, written

from capture.reduce import reduce_run

FRAMES = RATE * SECONDS


def checked(place: Path, frame_bytes: int, mtu: int, stack: tuple[int, int]) -> dict[str, Any]:
    """Returns the check of a run in which b's interface of this MTU received FRAMES frames of this size, and
    its stack counted these packets and bytes.
    """
    counts = agreeing()
    for second in range(SECONDS + 1):
        counts.nodes["b", second][1:3] = [RATE * second * frame_bytes, RATE * second]
    run = written(place, counts)
    plan = json.loads((run / "plan.json").read_text())
    for node in plan["nodes"]:
        node["interfaces"][0]["mtu"] = mtu
    (run / "plan.json").write_text(json.dumps(plan))
    packets, octets = stack
    (run / "raw" / "stacks.csv").write_text(f"b,IpInReceives,{packets}\nb,IpExtInOctets,{octets}\n")
    reduce_run(run)
    found = json.loads((run / "manifest.json").read_text())["checks"]
    return dict(next(check for check in found if check["name"] == "stack-bytes"))


@pytest.mark.parametrize(("frame_bytes", "mtu"), [(142, 1500), (1514, 1500), (1741, 1800), (9014, 9000)])
def test_a_flooded_frame_may_be_as_long_as_the_mtu_permits(
    tmp_path: Path, frame_bytes: int, mtu: int
) -> None:
    assert checked(tmp_path, frame_bytes, mtu, (0, 0))["verdict"] == "holds"


@pytest.mark.parametrize(
    ("frame_bytes", "mtu", "stack"),
    [
        (2000, 1500, (0, 0)),  # longer than the interface's MTU
        # the stack received all frames, but counted 2,000 bytes too few for each
        (9014, 9000, (FRAMES, FRAMES * 7000)),
        (9014, 9000, (FRAMES - 1, (FRAMES - 1) * 7000)),  # one flooded frame explains one missing frame only
    ],
)
def test_flooding_explains_no_other_bytes(
    tmp_path: Path, frame_bytes: int, mtu: int, stack: tuple[int, int]
) -> None:
    assert checked(tmp_path, frame_bytes, mtu, stack)["verdict"] == "fails"
