"""RabbitMQ in virtual time beside mosquitto: the same role, all messages accounted for."""

from __future__ import annotations

import polars as pl
import pytest
from virtual_place import PROJECT, Place

from orchestrator.kernel.facts import find_tool
from orchestrator.software.rabbitmq.room import SERVER


@pytest.mark.skipif(find_tool(SERVER) is None, reason="no rabbitmq-server (make setup installs it)")
def test_one_role_speaks_to_both_brokers(place: Place) -> None:
    run = place.run(
        "-p", "clients=2", "-p", "hold=4s", file=str(PROJECT / "topologies" / "rabbitmq-mqtt.yaml")
    )
    messages = pl.read_parquet(run.run_dir / "messages.parquet")
    assert set(messages["class"]) == {"rabbitmq", "mosquitto"}
    assert set(messages["outcome"]) == {"settled"} and set(messages["copies"]) == {1}
    latency = messages.group_by("class").agg((pl.col("received_ns") - pl.col("sent_ns")).median().alias("ns"))
    assert all(20_000_000 < ns < 25_000_000 or 10_000_000 < ns < 15_000_000 for ns in latency["ns"]), latency
    sessions = pl.read_parquet(run.run_dir / "sessions.parquet")
    assert set(sessions["what"]) <= {"connecting", "connected", "subscribed", "disconnected"}
    rabbit = (run.run_dir / "raw" / "logs" / "rabbit.broker.log").read_text()
    assert rabbit.rstrip().splitlines()[-1].startswith("vnet: answers")
