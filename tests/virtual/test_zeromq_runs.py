"""Tests libzmq in virtual time: all messages are accounted for, over TCP and multicast, and two runs are
equal.
"""

from __future__ import annotations

import subprocess

import polars as pl
import pytest
from virtual_place import PROJECT, Place

from orchestrator.kernel.facts import find_tool


@pytest.mark.skipif(find_tool("libzmq.so.5") is None, reason="no libzmq5 (make setup installs it)")
def test_every_consumer_answers_both_models_and_the_run_repeats(place: Place) -> None:
    file = PROJECT / "topologies" / "zeromq-request.yaml"
    small = ("-p", "consumers=4", "-p", "loss=0 %", "-p", "hold=12s")
    first = place.run(*small, file=str(file))
    messages = pl.read_parquet(first.run_dir / "messages.parquet")
    assert set(messages["class"]) == {"routed", "multicast"}
    assert set(messages["outcome"]) == {"settled"}
    of_each = messages.group_by("class", "seq").agg(pl.col("receiver").n_unique())
    assert of_each.height >= 4 and set(of_each["receiver"]) == {4}
    assert messages["copies"].to_list() == messages["replies"].to_list() == [1] * messages.height
    assert messages["round_trip_ns"].min() > 60_000_000  # ns: more than twice the link's delay

    # the filter leaves heartbeats out
    shown = ["-Y", "ip.dst == 239.192.0.1 && ip.len > 200", "-T", "fields", "-e", "ip.len"]
    pcap = first.run_dir / "pcap/way.pcap"
    data = subprocess.run(["tshark", "-r", pcap, *shown], capture_output=True, text=True, check=True)
    sent = 1699 * messages.filter(pl.col("class") == "multicast")["seq"].n_unique()
    assert sent < sum(map(int, data.stdout.split())) < 1.2 * sent, "each message leaves once for all"

    again = place.run(*small, file=str(file))
    assert again.hashes == first.hashes
