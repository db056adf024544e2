"""Tests that a program writes below /etc and /var of its node's own copies in virtual time, and that figures
of programs are judged there.
"""

from __future__ import annotations

import json
from pathlib import Path

from virtual_place import Place

NAME = "vnet-copied-directories"
COPIED = f"""\
name: copied
segments: {{near: {{subnet: 10.1.0.0/24}}, far: {{subnet: 10.1.0.0/24}}}}
nodes:
  a:
    segment: near
    mounts: {{copy: [/etc, /var]}}
    software:
      write: {{command: "touch /etc/{NAME} /var/lib/{NAME} && echo written", at_end: exited, start: ramp}}
      probe:
        command: ping -c 5 -i 0.2 b
        start: hold
        at_end: exited
        figures: {{from: log, format: ping}}
  b: {{segment: far}}
  plain:
    segment: far
    software:
      write: {{command: "touch /var/lib/{NAME} || echo refused", at_end: exited, start: ramp}}
links: {{way: {{between: [near, far], both: {{delay: 20 ms}}}}}}
run: {{hold: 4 s}}
expect: ["program_lost < 1", "program_latency_max < 90 ms"]
"""


def test_a_node_writes_below_etc_and_var_of_its_own(place: Place) -> None:
    (place.cwd / "copied.yaml").write_text(COPIED)
    ran = place.run(file="copied.yaml")
    logs = ran.run_dir / "raw/logs"
    assert (logs / "a.write.log").read_text() == "written\n"
    assert (logs / "plain.write.log").read_text().endswith("refused\n")
    assert not [top for top in ("/etc", "/var/lib") if (Path(top) / NAME).exists()]
    done = place.vnet("report", str(ran.run_dir))
    assert done.returncode == 0, done.stderr
    verdicts = json.loads((ran.run_dir / "verdicts.json").read_text())
    assert '"program_lost below 1"' in json.dumps(verdicts) and "fails" not in json.dumps(verdicts)
    found = {row["name"]: row for row in json.loads((ran.run_dir / "summary.json").read_text())}
    assert found["program_received"]["value"] == 5 and found["program_received"]["program"] == "a/probe"
