"""Tests priorities in an end node's own stack in front of a real driver; tests/hil/verify.py checks the
results outside the nested machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hil_machine import PORT_A, PORT_B, PROJECT, RESULTS, vnet

sys.path.append(str(PROJECT / "tests/virtual"))

from shorter_stacks import shorter

# Message rates that an emulated NIC carries while the rest of the machine is emulated, too.
SLOW = {"rate": "2mbit", "get": "800 kbit/s"}


def test_round_trips_beside_a_transfer_through_the_cable(tmp_path: Path) -> None:
    file = tmp_path / "stacks.yaml"
    file.write_text(shorter())
    parameters = [word for name, value in SLOW.items() for word in ("-p", f"{name}={value}")]
    done = vnet(
        "run", str(file), "-p", f"nics={PORT_A} {PORT_B}", *parameters,
        "--results", str(RESULTS), "--kernel", "host", "--raw",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
