"""Tests sampled values and GOOSE in one lab in virtual time with a cut: all accounted for, with tshark's byte
counts.
"""

from __future__ import annotations

import subprocess

import polars as pl
from virtual_place import Place

from capture.hierarchy import hierarchy

LAB = """\
name: layer2
seed: 1
segments: {bay: {subnet: 10.1.0.0/24}, control: {subnet: 10.1.0.0/24}}
nodes:
  relay:
    segment: control
    software: {sv: {sampled-values: {subscribe: unit}}, go: {goose: {subscribe: ied}}}
  unit:
    segment: bay
    software: {mu: {sampled-values: {publish: {sv_id: MU01, rate: 400 /s, asdus: 2, vlan: 0, settle: 0 s}}}}
  ied: {segment: bay, software: {g: {goose: {publish: {rate: 5 /s, vlan: 0, pcp: 6}}}}}
links: {way: {between: [bay, control], both: {delay: 1 ms}}}
captures: {way: {at: link way}}
timeline: [{at: hold + 2.5 s, link-down: way, for: 1.7 s}]
run: {connect_interval: 100 ms, hold: 6 s, drain: 1 s}
"""


def test_samples_and_events_are_accounted_for_across_a_cut(place: Place) -> None:
    (place.cwd / "layer2.yaml").write_text(LAB)
    ran = place.run("--lab", "layer2", file="layer2.yaml")
    messages = pl.read_parquet(ran.run_dir / "messages.parquet")
    samples, events = (messages.filter(pl.col("class") == name) for name in ("unit.mu", "ied.g"))
    lost = samples.filter(pl.col("received_ns").is_null())
    # 1.7 s of 200 frames/s are missing, and no frame arrives twice or out of order: the sender continued to
    # count.
    assert 335 <= lost.height <= 345, lost.height
    assert lost["seq"].to_list() == [*range(lost["seq"][0], lost["seq"][0] + lost.height)]
    assert samples.filter(pl.col("copies") > 1).is_empty() and not samples["reordered"].any()
    arrived = samples.drop_nulls("received_ns")["latency_ns"]
    assert arrived.min() >= 1_000_000 and arrived.max() < 2_000_000  # type: ignore[operator]
    # An event is lost only if all its copies were sent while the link was cut; of the last event, a copy
    # arrives.
    assert 5 <= events["received_ns"].null_count() <= 8
    assert events["attempts"].min() > 3 and events["copies"].max() > 3  # type: ignore[operator]
    sessions = pl.read_parquet(ran.run_dir / "sessions.parquet").filter(pl.col("peer") == "ied")
    assert sessions["what"].to_list()[:3] == ["connected", "disconnected", "connected"]

    ours = hierarchy(pl.scan_parquet(ran.run_dir / "packets/way.parquet"))
    argv = ["tshark", "-n", "-r", str(ran.run_dir / "pcap/way.pcap"), "-q", "-z", "io,phs"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    for name in ("sv", "goose"):
        (row,) = ours.filter(pl.col("path") == f"eth:vlan:{name}").iter_rows(named=True)
        (line,) = (line for line in said.splitlines() if line.split()[:1] == [name])
        assert line.split()[1:] == [f"frames:{row['packets']}", f"bytes:{row['wire_bytes']}"]
