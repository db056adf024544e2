"""Tests HTTP/2 of the agent in virtual time: every request is accounted for in spite of losses and an outage,
captures and tshark read the same requests, and h2load finds a server of HTTP/2.
"""

from __future__ import annotations

import json
import shutil
import subprocess

import polars as pl
import pytest
from virtual_place import Place

FILE = """\
name: second
segments: {field: {subnet: 10.52.0.0/16}, centre: {subnet: 10.52.0.0/16}}
nodes:
  server: {segment: centre, software: {web: {http: {listen: 80}}, safe: {http: {listen: 443, tls: lab}}}}
groups:
  client:
    count: 2
    segment: field
    software:
      kept:
        http:
          to: server
          port: 80
          version: 2
          request: {size: 100 B, reply: 2 kB, rate: 20 /s, rate_of: client, timeout: 5 s, class: kept}
      each:
        http:
          to: server
          port: 80
          version: 2
          keep_alive: false
          connections: 4
          request: {size: 100 B, reply: 2 kB, rate: 5 /s, rate_of: client, timeout: 5 s, class: each}
      safe:
        http:
          to: server
          port: 443
          version: 2
          tls: lab
          request: {size: 200 kB, reply: 200 kB, rate: 1 /s, rate_of: client, timeout: 20 s, class: tls}
links:
  way: {between: [field, centre], both: {delay: 20 ms, loss: 1 %, rate: 50 Mbit/s}}
captures: {server: {at: node server}}
timeline:
  - {at: hold + 4 s, link-down: way, for: 3 s}
run: {connect_interval: 10 ms, hold: 12 s, drain: 15 s}
"""
FOREIGN = """\
name: foreign
segments: {lan: {subnet: 10.52.0.0/16}}
nodes:
  server: {segment: lan, software: {web: {http: {listen: 80}}}}
  load:
    segment: lan
    software:
      h2load:
        command: h2load -n 500 -c 3 -m 20 http://server/
        start: hold
        at_end: exited
        figures: {from: log, format: h2load}
run: {hold: 3 s}
"""


def test_every_request_is_accounted_for_and_captures_show_the_same(place: Place) -> None:
    (place.cwd / "second.yaml").write_text(FILE)
    run = place.run("--lab", "second", seed=1, file="second.yaml")
    table = pl.read_parquet(run.run_dir / "messages.parquet")
    of = {str(name[0]): group for name, group in table.group_by("class")}
    assert {name: group.height > 20 for name, group in of.items()} == {
        "kept": True,
        "each": True,
        "tls": True,
    }
    for group in of.values():
        assert set(group["outcome"]) == {"settled"} and group["replied_ns"].null_count() == 0
    assert run.manifest["foreign"] == 0
    slow = of["kept"].filter(pl.col("replied_ns") - pl.col("scheduled_ns") > 1_000_000_000)
    assert slow.height > 20, "requests of the outage wait for its end"
    clear = of["kept"].height + of["each"].height
    if shutil.which("tshark"):
        argv = ["tshark", "-n", "-r", str(run.run_dir / "pcap/server.pcap"), "-T", "fields"]
        argv += ["-o", "tcp.reassemble_out_of_order:TRUE"]
        argv += ["-Y", "http2.headers.method", "-e", "http2.headers.method"]
        said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        assert said.count("POST") == clear
    done = place.vnet("report", str(run.run_dir))
    assert done.returncode == 0, done.stderr
    rows = json.loads((run.run_dir / "summary.json").read_text())
    unfollowed = [row["value"] for row in rows if row["name"] == "app_unfollowed"]
    assert set(unfollowed) == {0}, "also where the connection's first packet was sent again"
    (answered,) = (row for row in rows if row["name"] == "app_status_2xx" and row["protocol"] == "http2")
    assert clear - 10 <= answered["value"] <= clear, "all but those of the ramp, before the hold"


def test_h2load_finds_a_server_of_http2(place: Place) -> None:
    if shutil.which("h2load") is None:
        pytest.skip("h2load is not installed; images/packages.sh services")
    (place.cwd / "foreign.yaml").write_text(FOREIGN)
    done = place.vnet("run", "foreign.yaml", "--time", "virtual", "--out", "out")
    assert done.returncode == 0, done.stderr
    log = (place.cwd / "out/raw/logs/load.h2load.log").read_text()
    assert "Application protocol: h2c" in log
    assert "500 done, 0 succeeded, 500 failed, 0 errored, 0 timeout" in log
    assert "status codes: 0 2xx, 0 3xx, 500 4xx, 0 5xx" in log, "a GET is none of the agent's requests"
    manifest = json.loads((place.cwd / "out/manifest.json").read_text())
    assert manifest["foreign"] == 500
