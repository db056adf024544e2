"""Tests that independent counts of a lab in virtual time agree to the frame and the byte, whatever its links
do.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
from virtual_place import Place

from capture.reduce import reduce_run
from contract import manifest

MIX = """\
name: mix
seed: 1
segments:
  l: {subnet: 10.5.0.0/24}
  m: {subnet: 10.6.0.0/24}
  n: {subnet: 10.7.0.0/24}
  o: {subnet: 10.7.0.0/24}
nodes:
  a: {segment: l, software: {q: {udp: {to: b, push: {rate: 50 /s, size: 972 B}}}}}
  b:
    segment: m
    software:
      q: {udp: {listen: 7000}}
      t: {tcp: {listen: 7001}}
      k: {bulk: {listen: 5201}}
      mosquitto: {broker: mosquitto}
  c: {software: {q: {udp: {to: d, push: {rate: 400 /s, size: 972 B}}}}}
  d: {software: {q: {udp: {listen: 7000}}}}
  r: {segment: l, forward: true}
  s: {segment: m, forward: true}
  x:
    segment: m
    software:
      t: {bulk: {to: b, congestion: reno, class: bulk}}
      m: {mqtt: {broker: b, publish: {topic: t, qos: 0, rate: 20 /s, rate_of: client}}}
  y: {segment: n, software: {q: {udp: {to: z, push: {rate: 50 /s, size: 972 B}}}}}
  z: {segment: o, software: {q: {udp: {listen: 7000}}}}
  e: {software: {q: {udp: {to: f, push: {rate: 30 /s, size: 972 B}}}}}
  t: {forward: true}
  f: {software: {q: {udp: {listen: 7000}}}}
links:
  no: {between: [n, o], both: {rate: 200 kbit/s, limit: 5}}
  et: {between: [e, t], both: {delay: 2 ms}}
  tf: {between: [t, f], both: {rate: 100 kbit/s, delay: 2 ms, limit: 5}}
  rs: {between: [r, s], both: {rate: 50 Mbit/s, loss: 2 %}}
  p: {between: [c, d], both: {delay: 1 ms}}
  acc: {between: [b, m], forward: {delay: 5 ms}, reverse: {rate: 5 Mbit/s, delay: 5 ms, limit: 20}}
captures:
  rs: {at: link rs}
  b: {at: node b, snaplen: 96}
  m: {at: segment m}
  udp: {at: node b, filter: udp port 7000}
timeline:
  - {at: hold + 1.5 s, impair: rs, both: {loss: 5 %}}
run: {hold: 4 s, drain: 2 s}
"""


def checks(run_dir: Path) -> dict[str, str]:
    return {check["name"]: check["verdict"] for check in manifest.read(run_dir)["checks"]}


def test_every_count_of_a_lab_agrees_and_one_that_is_changed_is_found(place: Place) -> None:
    (place.cwd / "mix.yaml").write_text(MIX)
    run = place.run("--strict", file="mix.yaml").run_dir
    found = checks(run)
    # These checks need a queue that is full all the time, or nodes with only a bulk flow, which the lab
    # lacks.
    untold = {"link-full", "link-stack", "link-drops", "link-backlog", "transfer-nodes", "datagrams-sent"}
    assert {verdict for name, verdict in found.items() if name not in untold} == {"holds"}, found
    assert "fails" not in found.values(), found
    links = pl.read_parquet(run / "links.parquet")
    assert links.filter(pl.col("link").is_in(["rs", "acc"]))["dropped"].max() > 0  # type: ignore[operator]
    for name in ("no", "tf"):
        assert links.filter(link=name)["dropped"].max() > 50, "half of it"  # type: ignore[operator]
    nodes = run / "raw" / "nodes.csv"
    lines = nodes.read_text().splitlines()
    # The frames of links between nodes count for no node, as an earlier version counted them.
    zero = [line.split(",") for line in lines]
    gone = [",".join(f[:3] + ["0"] * 4 + f[7:] if f[1] in ("c", "d") else f) for f in zero]
    assert bad_after(run, "nodes.csv", gone) == {"node-links", "node-payload"}
    records = (run / "raw" / "messages.csv").read_text().splitlines()
    flow = next(
        n for n, f in enumerate(json.loads((run / "plan.json").read_text())["flows"]) if f["sender"] == "c"
    )
    kept = [line for line in records if not line.startswith(f"R,{flow},")]
    assert bad_after(run, "messages.csv", kept) == {"message-totals", "message-losses"}
    samples = (run / "raw" / "links.csv").read_text().splitlines()
    # the drops of a queue become 0 in these lines, as if nobody had counted them
    fields = [line.split(",") for line in samples]
    quiet = [",".join([*f[:5], "0", *f[6:]] if f[1:3] == ["no", "forward"] else f) for f in fields]
    assert bad_after(run, "links.csv", quiet) == {"link-frames", "segment-frames"}
    cpu = [line.replace(line.rpartition(",")[2], str(10**10)) for line in
           (run / "raw" / "cpu.csv").read_text().splitlines()]  # fmt: skip
    assert bad_after(run, "cpu.csv", cpu) - {"cpu-sampled"} == {"node-cpu-processes"}


def bad_after(run_dir: Path, name: str, lines: list[str]) -> set[str]:
    """Returns the checks that fail for a copy of the run whose raw file has these lines."""
    copy = run_dir.with_name(f"{run_dir.name}-changed")
    shutil.copytree(run_dir, copy)
    (copy / "raw" / name).write_text("\n".join(lines) + "\n")
    reduce_run(copy)
    found = checks(copy)
    shutil.rmtree(copy)
    return {name for name, verdict in found.items() if verdict == "fails"}
