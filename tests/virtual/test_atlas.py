"""Runs two points of the atlas, collects them and shows the atlas, through the real command line."""

from __future__ import annotations

import json

from virtual_place import PROJECT, Place

from reports.atlas.dataset import read

TWO = f"""\
name: two
campaign:
  topologies: [{PROJECT}/topologies/atlas/udp.yaml]
  parameters: {{hold: 55 s, silence: 55 s, patience: 5 s, delay: 5 ms, receivers: 2, duplex: half}}
  points:
    - {{loss: 0 %, rate: 100 kbit/s}}
    - {{loss: 100 %, rate: 1 Mbit/s}}
"""


def test_two_points_become_two_rows(place: Place) -> None:
    (place.cwd / "two.yaml").write_text(TWO)
    ran = place.vnet("atlas", "run", "two.yaml", "--out", "out")
    assert ran.returncode == 0, ran.stderr
    rows = read(place.cwd / "out" / "atlas.parquet").rows.to_dicts()
    assert [(r["model"], r["point"], r["loss"], r["rate_bps"]) for r in rows] == [
        ("udp", 1, 0.0, 1e5), ("udp", 2, 1.0, 1e6),
    ]  # fmt: skip
    whole, nothing = rows
    assert (whole["updates"], whole["owed"], whole["delivered"], whole["confirmed"]) == (2, 4, 4, 4)
    # Two frames of 1,042 B, one after the other at 100 kbit/s, after a delay of 5 ms and an ARP exchange.
    assert 0.05 < whole["latency_p10_s"] < whole["latency_p100_s"] < 0.4 and not whole["hit_patience"]
    assert whole["bytes_per_update"] >= 1042 + 70
    assert (nothing["delivered"], nothing["hit_patience"], nothing["latency_p50_s"]) == (0, True, None)
    assert len(whole["code"]) == 64 and whole["time"] == "virtual"
    again = place.vnet("atlas", "run", "two.yaml", "--out", "out")
    assert again.returncode == 0 and "2 runs of 1 models at 2 points" in again.stderr
    shown = place.vnet("atlas", "show", "--data", "out/atlas.parquet", "--json")
    assert json.loads(shown.stdout)["runs"] == "2: udp 2"
