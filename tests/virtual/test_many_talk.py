"""Tests that more nodes communicate in one lab kernel than a kernel's default neighbour table allows (512
pairs).
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from virtual_place import Place

from capture.reduce import reduce_run

CLIENTS = 600
LAB = f"""\
name: many
seed: 1
segments: {{l: {{subnet: 10.1.0.0/21}}}}
nodes: {{broker: {{segment: l, software: {{m: {{broker: mosquitto}}}}}}}}
groups:
  c:
    count: {CLIENTS}
    segment: l
    software:
      s:
        mqtt:
          broker: broker
          subscribe: [{{topic: "c/{{index}}", qos: 1}}]
          publish: {{topic: "c/{{next}}", qos: 1, rate: 200 /s, payload_size: 548 B}}
run: {{connect_interval: 5 ms, hold: 3 s, drain: 5 s}}
"""


@pytest.mark.sweep  # a minute of a core
@pytest.mark.timeout(600)
def test_six_hundred_clients_of_one_broker_all_connect(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "many.yaml").write_text(LAB)
    done = place.vnet("run", "many.yaml", "--time", "virtual", "--raw", "--out", "out", timeout_s=500)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "out"
    assert "neighbor table overflow" not in (run / "raw" / "console.log").read_text(errors="replace")
    reduce_run(run)
    sessions = pl.read_parquet(run / "sessions.parquet")
    connected = sessions.filter(pl.col("what") == "connected")["endpoint"].n_unique()
    assert connected == CLIENTS
    messages = pl.read_parquet(run / "messages.parquet")
    assert messages["received_ns"].null_count() == 0 and messages["sender"].n_unique() > CLIENTS // 2
