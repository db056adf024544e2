"""Runs a short version of RESERVE's test 8 in virtual time: five combinations in one lab, checked by their
captures.
"""

from __future__ import annotations

import polars as pl
import pytest
from virtual_place import PROJECT, Place

from orchestrator.kernel.facts import find_tool
from orchestrator.software.encodings import encoded_bytes
from orchestrator.software.rabbitmq.kind import SERVER
from reports.papers.reserve.efficiency import COMBINATIONS, efficiency_metrics
from reports.papers.reserve.tables import tables
from reports.rundir import read_run
from reports.study import study_of_run


@pytest.mark.skipif(find_tool(SERVER) is None, reason="no rabbitmq-server (make setup installs it)")
def test_what_a_measurement_takes(place: Place) -> None:
    file = PROJECT / "topologies" / "papers" / "reserve-8-efficiency.yaml"
    run = place.run("-p", "hold=3s", file=str(file))
    messages = pl.read_parquet(run.run_dir / "messages.parquet")
    assert set(messages["class"]) == set(COMBINATIONS) and messages["received_ns"].null_count() == 0
    found = {(m.name, m.of.capture, m.of.layer): m.value for m in efficiency_metrics(read_run(run.run_dir))}
    assert found["measurement_bytes", "sv", None] == 98  # the value of table 5
    for name, encoding in (("json", "villas-json"), ("protobuf", "protobuf")):
        for protocol, packets in (("mqtt", 2), ("amqp", 3.5)):
            device = f"{protocol}-{name}"
            assert found["measurement_payload", device, None] == 2 * encoded_bytes(encoding, 10)
            # The other packets begin and end the connection; the load lasts only two seconds.
            assert found["measurement_packets", device, None] == pytest.approx(packets, rel=0.15)
    assert len(tables(study_of_run(run.run_dir))) == 2
