"""Tests RabbitMQ in virtual time, with AMQP and MQTT through it while the link is cut: all
guarantees hold.
"""

from __future__ import annotations

import polars as pl
import pytest
from virtual_place import PROJECT, Place

from orchestrator.kernel.facts import find_tool
from orchestrator.software.rabbitmq.kind import SERVER


@pytest.mark.skipif(find_tool(SERVER) is None, reason="no rabbitmq-server (make setup installs it)")
def test_what_is_confirmed_survives_a_cut_and_what_is_not_is_lost(place: Place) -> None:
    file = PROJECT / "topologies" / "amqp-outage.yaml"
    run = place.run("-p", "clients=1", "-p", "hold=18s", file=str(file))
    messages = pl.read_parquet(run.run_dir / "messages.parquet")
    of = {name[0]: group for name, group in messages.group_by("class")}
    assert set(of) == {"amqp-kept", "amqp-plain", "mqtt"}
    for name in ("amqp-kept", "mqtt"):
        assert set(of[name]["outcome"]) == {"settled"} and of[name]["received_ns"].null_count() == 0
    lost = of["amqp-plain"]["received_ns"].null_count()
    assert 0 < lost < 60  # the cut lasts 5 s at 10 messages/s, minus those that waited in the socket
    assert of["amqp-kept"]["attempts"].max() == 2, "what the cut left unconfirmed is sent again"
    assert of["amqp-kept"].filter(pl.col("latency_ns") > 5_000_000_000).height > 0

    sessions = pl.read_parquet(run.run_dir / "sessions.parquet")
    kept = sessions.filter(pl.col("endpoint") == "meter1-kept")["detail"].to_list()
    assert "no heartbeat in time" in kept
    packets = pl.read_parquet(run.run_dir / "packets" / "way.parquet")
    assert set(packets["app"].drop_nulls()) == {"amqp", "mqtt"}
    types = set(packets["app_types"].drop_nulls().explode())
    assert {
        "Heartbeat",
        "Basic.Publish",
        "Basic.Ack",
        "PUBLISH",
        "PUBACK",
    } <= types and "UNKNOWN" not in types
