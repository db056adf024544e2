"""Tests the events freeze, disk-full and split in a real lab in virtual time: what programs can do
meanwhile.
"""

from __future__ import annotations

import itertools
import json

from virtual_place import Place

FILE = """\
name: faults
segments: {near: {subnet: 10.7.0.0/24}, far: {subnet: 10.7.0.0/24}}
nodes:
  clock:
    segment: near
    software:
      tick: {command: "while sleep 0.5; do echo now $(cut -d. -f1 /proc/uptime); done", start: ramp}
      deaf: {command: "trap '' TERM; while sleep 0.5; do :; done", start: ramp}
  disk:
    segment: near
    software:
      write:
        command: "while sleep 0.5; do head -c 9000 /dev/zero >> file && echo wrote || echo full; done"
        start: ramp
  other:
    segment: far
    software:
      ping: {command: "ping -n -D -i 0.5 {{ addresses.disk }}", start: ramp}
links: {wan: {between: [near, far]}}
timeline:
  - {at: hold + 2 s, freeze: clock, software: tick, for: 4 s}
  - {at: hold + 2 s, disk-full: disk, for: 4 s}
  - {at: hold + 2 s, split: [[clock, disk], other], for: 4 s}
  - {at: hold + 8 s, freeze: clock, for: 3 s}
run: {ramp: 1 s, hold: 10 s, drain: 1 s}
"""


def test_programs_stop_disks_are_full_and_sets_are_apart_for_a_while(place: Place) -> None:
    (place.cwd / "faults.yaml").write_text(FILE)
    ran = place.run(file="faults.yaml")
    logs = ran.run_dir / "raw" / "logs"
    seconds = [int(line.split()[1]) for line in (logs / "clock.tick.log").read_text().splitlines()]
    gaps = [b - a for a, b in itertools.pairwise(seconds)]
    assert max(gaps) >= 4 and sum(gap > 1 for gap in gaps) <= 2, gaps
    said = [line.split()[0] for line in (logs / "disk.write.log").read_text().splitlines() if line[0] in "wf"]
    full = said.count("full")
    assert 6 <= full <= 9 and said[-1] == "wrote", "it may write again"
    pings = [ln for ln in (logs / "other.ping.log").read_text().splitlines() if "icmp_seq" in ln]
    lost = 24 - len(pings)
    assert lost >= 6, "those of 4 s"
    lines = (ran.run_dir / "raw" / "events.jsonl").read_text().splitlines()
    actions = [json.loads(line)["action"] for line in lines if '"action"' in line]
    assert sorted(set(actions)) == ["disk-free", "disk-full", "freeze", "link-down", "link-up", "thaw"]
