"""Tests that randomly changed files of other tools are read or refused as files, and never cause another
error.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import containerlab_lab
import kathara_lab
import pytest
import test_core
import test_gns3
import test_netlab
from page_rows import compose as compose_rows
from page_rows import graphml as graphml_rows

from orchestrator.exchange import compose, containerlab, core, gns3, kathara, mahimahi, netlab, writing
from orchestrator.exchange.network import Network
from orchestrator.topology import TopologyError
from orchestrator.topology.graphml import topology_text

WORDS = [
    b'"',
    b"[",
    b"]",
    b"{",
    b":",
    b"-",
    b"9" * 20,
    b"\xff",
    b"null",
    b"-1",
    b"..",
    b"\n",
    b"<",
    b"[]",
    b"nan",
]
ROUNDS = 60
PROJECT = json.dumps(test_gns3._project(), indent=1).encode()
Read = Callable[[Path], Network]
FILES: dict[str, tuple[bytes, Read]] = {
    "containerlab": (
        containerlab_lab.TOPOLOGY.encode(),
        lambda file: containerlab.read(file, stand_ins=True),
    ),
    "core": (test_core.SCENARIO.encode(), core.read),
    "gns3": (PROJECT, lambda file: gns3.read(file, stand_ins=True)),
    "kathara": (kathara_lab.LAB.encode(), kathara.read),
    "compose": (
        compose_rows.PROJECT.replace("    image:", "    scale: 1\n    image:", 1).encode(),
        compose.read,
    ),
    "mahimahi": (
        b"D=5\nmm-delay $D mm-loss uplink 0.1 mm-link a.t b.t --once -- sh -c 'iperf -c 1'\n",
        mahimahi.read,
    ),
    "graphml": (
        graphml_rows.TOOL.files[graphml_rows.TOOL.main].encode(),
        lambda file: topology_text("x", file.read_bytes(), "x"),  # type: ignore[arg-type, return-value]
    ),
    "netlab": (test_netlab.TOPOLOGY.encode(), lambda file: netlab.read(file, stand_ins=True)),
}


def _changed(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at, kind = chance.randrange(len(changed) + 1), chance.random()
        if kind < 0.4:
            changed[at : at + chance.randint(0, 6)] = chance.choice(WORDS)
        elif kind < 0.7:
            del changed[at : at + chance.randint(1, 30)]
        else:
            start = chance.randrange(len(changed) + 1)
            changed[at:at] = changed[start : start + chance.randint(1, 60)]
    return bytes(changed)


@pytest.mark.parametrize("tool", FILES)
def test_files_changed_by_chance_are_read_or_refused(tmp_path: Path, tool: str) -> None:
    content, read = FILES[tool]
    chance, file = random.Random(tool), tmp_path / "file"
    for _ in range(ROUNDS):
        file.write_bytes(_changed(content, chance))
        try:
            made = read(file)
            if isinstance(made, Network):
                writing.write(made)
        except TopologyError as error:
            assert error.problems
