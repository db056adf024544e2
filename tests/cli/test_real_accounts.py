"""Tests programs that record their own messages, on the machine's own kernel; one of them writes invalid
records.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command_line import PROJECT, TOPOLOGIES

AGENT = PROJECT / "target/release/vnet-agent"
LAB = f"own-{os.getpid()}"
NONSENSE = """\
segments: {lan: {subnet: 10.61.0.0/24}}
nodes:
  take:
    segment: lan
    software: {take: {command: sleep inf, receives: true}}
  send:
    segment: lan
    software:
      send:
        command: sh talk.sh
        files:
          talk.sh: |
            until grep -q '"t0_ns": [0-9]' $VNET_FLOWS; do sleep 0.05; done
            t0=$(sed -n 's/.*"t0_ns": \\([0-9]*\\).*/\\1/p' $VNET_FLOWS)
            first=$(tr -d ' \\n' < $VNET_FLOWS | sed 's/.*"times_ns":\\[\\([0-9]*\\).*/\\1/')
            due=$((t0 + first))
            sleep 2 # it is due about a second after the start
            {
              echo "S,0,0,100,$due,$due,0,1,sent"
              echo "hello, records"
              echo "S,9,0,100,$t0,$t0,0,1,sent"
              echo "S,0,1,100,17,18,0,1,sent"
              for i in $(seq 100); do echo "nonsense $i"; done
              printf "S,0,2,100"
            } > $VNET_RECORDS
        at_end: exited
        flows:
          talk: {to: take, size: 100 B, rate: 10 /s, guarantee: {name: nothing lost, lossless: true}}
run: {hold: 2 s, drain: 2 s}
"""

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of the machine need root"),
    pytest.mark.skipif(not AGENT.exists(), reason="the agent is not built (make setup)"),
]


def ran(vnet: Any, *more: str) -> Path:
    done = vnet("run", "own.yaml", "--kernel", "host", "--results", "out", "--json", *more)
    return Path(vnet.cwd / json.loads(done.stdout)["run_dir"])


@pytest.mark.skipif(shutil.which("cc") is None, reason="the example's receiver is C; install cc")
def test_the_example_gets_its_latency_loss_and_verdict(vnet: Any) -> None:
    text = (TOPOLOGIES / "own-program.yaml").read_text()
    text = text.replace("name: own-program", f"name: {LAB}")
    # This kernel may lack netem, so the link has no impairment and the two parameters are unused.
    text = text.replace('both: {delay: "${delay}", loss: "${loss}"}', "both: {}")
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("  delay: {", "  loss: {")))
    (vnet.cwd / "own.yaml").write_text(text)
    run_dir = ran(vnet, "-p", "hold=3s", "-p", "meters=2")
    messages = pl.read_parquet(next(run_dir.rglob("messages.parquet")))
    assert messages.height == 2 * 10 * 2 and messages["received_ns"].null_count() == 0
    assert set(messages["name"]) == {"meter1.send", "meter2.send"} and set(messages["outcome"]) == {"sent"}
    assert 0 < messages["latency_ns"].min() < 50_000_000  # type: ignore[operator]
    page = (run_dir / "report" / "index.html").read_text()
    assert "datagrams in order" in page and "meter.send" in page
    summary = json.loads((run_dir / "summary.json").read_text())
    found = {one["name"]: one["value"] for one in summary if one["guarantee"] == "datagrams in order"}
    assert (found["messages_scheduled"], found["messages_lost"]) == (40, 0) and found["latency_p50"] > 0
    assert [w for w in manifest(run_dir)["warnings"] if w["code"] == "records"] == []


def test_nonsense_is_told_with_file_line_and_rule_and_the_run_goes_on(vnet: Any) -> None:
    (vnet.cwd / "own.yaml").write_text(f"name: {LAB}\n{NONSENSE}")
    run_dir = ran(vnet)
    told = manifest(run_dir)
    assert told["state"] == "complete"
    of_records = [w for w in told["warnings"] if w["code"] in ("records", "trust-unrecorded")]
    texts = [w["text"] for w in of_records]
    assert all(w["suspect"] for w in of_records)
    for expected in (
        "send.records, line 2: 'hello, records': does not begin with S, R, C or P",
        ": flow 9 is not sent by this software; 0 are",
        "line 4: 'S,0,1,100,17,18,0,1,sent': scheduled_ns is before t0_ns, ",
        "line 5: 'nonsense 1': does not begin",
        "send.records: 80 more lines are invalid",
        "send.send: 9 of 10 messages that were due have no S record that can be: ",
    ):
        assert any(expected in text for text in texts), (expected, texts)
    assert len(texts) == 24 + 2 and texts[0].startswith("nodes.send.send: ")
    messages = pl.read_parquet(next(run_dir.rglob("messages.parquet")))
    assert messages.height == 1 and messages["received_ns"].null_count() == 1


def manifest(run_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run_dir / "manifest.json").read_text())
    return found
