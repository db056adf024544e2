"""Tests one cell of the NIC qualification of RFC 2544 through both ports; tests/hil/verify.py checks its
findings outside the nested machine.
"""

from __future__ import annotations

import csv

from hil_machine import PORT_A, PORT_B, RESULTS, run_of, vnet

# Frame rates that an emulated NIC carries, in trials that are as short as possible.
SHORT = {
    "frame_size": "512", "line_rate": "10 Mbit/s", "trial": "300ms", "latency_trials": "1",
    "latency_trial": "300ms", "burst": "100ms", "burst_trials": "1",
}  # fmt: skip


def test_a_size_through_the_cable() -> None:
    parameters = [word for name, value in SHORT.items() for word in ("-p", f"{name}={value}")]
    done = vnet(
        "run", "topologies/nic-qualification.yaml", "-p", f"nics={PORT_A} {PORT_B}", *parameters,
        "--results", str(RESULTS), "--kernel", "host", "--raw",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with (run_of("nic-qualification") / "raw" / "findings.csv").open() as file:
        found = {row["test"]: float(row["value"]) for row in csv.DictReader(file)}
    assert found["throughput"] > 0
    assert found["back-to-back"] > 0
