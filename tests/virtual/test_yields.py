"""Tests that a program which yields its core in a loop (as ping does while it waits) is charged for its calls
only, and that the other nodes run beside it.
"""

from __future__ import annotations

import polars as pl
from virtual_place import Place

YIELDS = 2000
LAB = f"""\
name: yields
seed: 1
nodes:
  ask: {{software: {{q: {{udp: {{to: answer, request: {{rate: 500 /s, size: 64 B, reply: 64 B}}}}}}}}}}
  answer: {{software: {{q: {{udp: {{listen: 7000}}}}}}}}
  loop:
    software: {{it: {{command: [perl, "-e", "syscall(24) for 1..{YIELDS}"], start: hold, at_end: exited}}}}
  wait:
    software: {{it: {{command: [ping, "-n", "-i", "0.05", "-c", "30", pong], start: hold, at_end: exited}}}}
  pong: {{}}
links:
  first: {{between: [ask, answer], both: {{delay: 10 ms}}}}
  second: {{between: [wait, pong], both: {{delay: 10 ms}}}}
  third: {{between: [loop, pong], both: {{delay: 10 ms}}}}
run: {{hold: 3 s}}
"""


def test_a_yield_costs_a_call_and_holds_up_no_other_node(place: Place) -> None:
    (place.cwd / "yields.yaml").write_text(LAB)
    ran = place.run("--junit", "j.xml", file="yields.yaml")
    nodes = pl.read_parquet(ran.run_dir / "nodes.parquet")
    spent = {
        str(name): int(rows["cpu_ns"].max()) / 1e9  # type: ignore[arg-type]
        for (name,), rows in nodes.group_by("node")
    }
    assert YIELDS * 5e-6 <= spent["loop"] < YIELDS * 5e-6 + 0.02  # sched_yield is 24; a call costs 5 us
    assert spent["wait"] < 0.1
    messages = pl.read_parquet(ran.run_dir / "messages.parquet")
    late = messages["sent_ns"] - messages["scheduled_ns"]
    assert int(late.max()) < 5_000_000  # type: ignore[arg-type]
