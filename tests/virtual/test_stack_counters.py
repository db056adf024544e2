"""Compares the kernel's own counters of a node with the packets of a capture at the node."""

from __future__ import annotations

import polars as pl
from virtual_place import PROJECT, Place

FIN, SYN = 1, 2  # these flags take a sequence number, as data does (RFC 9293, 3.4)


def test_the_server_sent_again_what_the_capture_saw_it_send_again(place: Place) -> None:
    file = PROJECT / "topologies" / "tcp-request.yaml"
    # The long outage is left out: in it neighbours' addresses are forgotten, and packets are dropped before
    # the capture sees them.
    small = ("-p", "clients=4", "-p", "hold=10 s", "-p", "loss=3 %", "-p", "outage=1 ms")
    run = place.run(*small, file=str(file)).run_dir
    stacks = pl.read_parquet(run / "stacks.parquet")
    packets = pl.read_parquet(run / "packets" / "server.parquet")
    # These packets were captured at the server, before its link can lose any.
    server = packets.filter(pl.col("src") == "10.51.0.1")
    counted = dict(stacks.filter(pl.col("node") == "server").select("counter", "value").iter_rows())
    # Retransmissions are found by sequence number: a segment that follows a loss probe counts as out of order
    # in an analysis, and is still a retransmission.
    numbered = server.filter((pl.col("payload_bytes") > 0) | (pl.col("tcp_flags") & (FIN | SYN) != 0))
    again = numbered.height - numbered.unique(["stream", "seq"]).height
    assert counted["TcpRetransSegs"] == again > 0
    assert set(stacks["group"]) == {"server", "client"}
