"""Tests two middleware programs on the machine's own kernel, if `make middleware` has built them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from orchestrator.software.middleware.planning import JAR

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of the machine need root"),
    pytest.mark.skipif(shutil.which("java") is None, reason="needs Java (images/packages.sh middleware)"),
    pytest.mark.skipif(not JAR.exists(), reason="the program is not built (make middleware)"),
]
FILE = f"""\
name: exchange-{os.getpid()}
segments: {{lan: {{subnet: 10.64.0.0/24}}}}
nodes:
  unit:
    segment: lan
    software: {{x: {{middleware: {{listen: 7000, use: rmi, serialiser: java, publish: {{rate: 20 /s}}}}}}}}
  station:
    segment: lan
    software:
      ask:
        middleware:
          to: unit
          warm_up: 500 ms
          request:
            rate: [{{from: 0 s, rate: 20 /s}}, {{from: 2 s, rate: 0 /s}}]
            greedy: {{start: 2 s, for: 1 s}}
      take: {{middleware: {{to: unit, subscribe: true, warm_up: 500 ms}}}}
run: {{hold: 3 s, drain: 5 s}}
"""


def test_every_message_is_accounted_for(vnet: Any) -> None:
    (vnet.cwd / "exchange.yaml").write_text(FILE)
    done = vnet("run", "exchange.yaml", "--kernel", "host", "--results", "out", "--json")
    run_dir = Path(vnet.cwd / json.loads(done.stdout)["run_dir"])
    messages = pl.read_parquet(next(run_dir.rglob("messages.parquet")))
    asked = messages.filter(pl.col("class") == "station.ask")
    assert asked.height == 20 and set(asked["outcome"]) == {"settled"}
    assert asked["round_trip_ns"].null_count() == 0
    published = messages.filter(pl.col("class") == "unit.x")
    assert published.height == 40 and published["received_ns"].null_count() == 0
    greedy = messages.filter(pl.col("class") == "station.ask.greedy")
    assert greedy.height > 20 and greedy["replied_ns"].null_count() == 0, "more than the schedule had"
    told = json.loads((run_dir / "manifest.json").read_text())
    assert [w for w in told["warnings"] if w["code"] == "records"] == []
