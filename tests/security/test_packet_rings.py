"""Tests that the rings of packet sockets, which the kernel charges to no control group, have a limit for each
node, and that programs with such a ring run in a node.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from test_limits_per_user import lab, taking

from orchestrator.lab.sandbox import RING_BYTES

RINGS = Path(__file__).parent / "rings.py"
MIB = 1 << 20

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root"),
]


def test_the_rings_of_a_node_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VNET_STATE_DIR", "")  # restored after the test
    with lab("host") as (base, name):
        os.environ["VNET_STATE_DIR"] = str(base / "s")
        at = (sys.executable, "-m", "orchestrator.cli.main", "exec", name)
        first = taking(*at, "a", "--", "python3", "-c", RINGS.read_text())
        try:
            said = first.communicate(timeout=60)
            found = json.loads(said[0])
        finally:
            first.kill()
        most = RING_BYTES // MIB
        assert found == {
            "received": most,
            "sent beside them": 0,
            "after all but a mapped one were closed": most - 1,
            "in a thread after one was returned": 1,
            "a short request": "EINVAL",
        }, said[1]
        if shutil.which("tcpdump"):
            capture = taking(
                *at, "b", "--", "timeout", "-s", "INT", "1", "tcpdump", "-i", "lo", "-w", "/tmp/x"
            )
            assert "listening on lo" in capture.communicate(timeout=30)[1]
